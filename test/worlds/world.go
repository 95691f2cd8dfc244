package worlds

import (
	"fmt"
	"math/rand/v2"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// start is the first moment of every world.
var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// fleetName is the one fleet of a world.
const fleetName = "f"

// owner marks the engine's drop-ins.
const owner = "sluice"

// World is one run of a plan.
type World struct {
	clock
	plan        Plan
	spec        fleet.Spec
	store       *enginetest.Store
	machines    []*machine // every incarnation ever, in order of birth
	jobs        []*job
	pending     []*job // pushed, not taken
	gitlab      gitlabState
	cloud       cloudState
	hosts       []hostFaults // by VM
	controller  controller
	control     *control.Control
	ledger      ledger
	chance      []*rand.Rand // by VM, and one for what belongs to none
	running     *proc        // nil = the world itself
	dying       string       // the point at which the controller is being killed
	pausedUntil time.Duration
	atomic      int // commits that must not wait
	waiting     map[string][]waitingAct
	inputsEnd   time.Duration
	tell        bool
	lines       []line
	broken      *Violation
	ended       bool
	rested      int
	hindered    time.Duration // until when something that goes wrong may be felt
	steps       int
}

// line is one line of a world's story.
type line struct {
	at   time.Duration
	text string
}

// Violation is a promise that a world saw broken.
type Violation struct {
	Rule string
	Text string
	At   time.Duration
}

func (v *Violation) String() string {
	return fmt.Sprintf("%s at %s: %s", v.Rule, v.At.Round(time.Millisecond), v.Text)
}

// newWorld makes the world of a plan. tell = keep its story.
func newWorld(p Plan, tell bool) *World {
	w := &World{plan: p, tell: tell, waiting: map[string][]waitingAct{}}
	w.ledger = newLedger()
	w.gitlab.managers = map[string]*manager{}
	w.cloud.creates, w.cloud.deletes = map[string]*attempt{}, map[string]*attempt{}
	for i := range len(p.VMs) + 1 {
		w.chance = append(w.chance, rand.New(rand.NewPCG(p.Seed, uint64(i)))) //nolint:gosec // a story, no secret
	}
	w.hosts = make([]hostFaults, len(p.VMs))
	w.cloud.vms = make([]cloudFaults, len(p.VMs))
	w.spec = specOf(p)
	points := &enginetest.Points{}
	points.At = func(name string) {
		points.Passed = points.Passed[:0]
		w.commitPoint(name)
	}
	w.store = enginetest.NewStore(points)
	w.control = w.newControl()
	for i := range p.VMs {
		w.settle(i)
	}
	w.schedule()
	return w
}

func specOf(p Plan) fleet.Spec {
	s := fleet.Spec{
		Name: fleetName, RunnerID: 7, GitLabURL: "https://gitlab.example", Registration: p.Fleet.registration(),
		HasGitLab: !p.Fleet.NoGitLab, HasRunnerToken: !p.Fleet.NoToken,
		HasWriteToken: p.Fleet.Write != "" && !p.Fleet.NoGitLab, Recovery: fleet.RecoveryPolicy{Orphans: !p.Fleet.NoRecovery, CutJobs: p.Fleet.CutJobs},
		Drain:          p.Fleet.Policy.policy(),
		MaxUnavailable: p.Fleet.MaxUnavailable, GateOnline: p.Fleet.Gate, Image: "image-2",
		Host: fleet.HostSettings{User: "fedora", RunnerUser: "fedora", Unit: "gitlab-runner.service", ConfigPath: "/etc/gitlab-runner/config.toml"},
	}
	if s.Individual() {
		s.RunnerID, s.HasRunnerToken = 0, false
	}
	for i := range p.VMs {
		s.VMs = append(s.VMs, vmName(i))
	}
	return s
}

func (p PolicyPlan) policy() fleet.DrainPolicy {
	return fleet.DrainPolicy{
		Cap: p.Cap, HardCap: p.HardCap, ReachDeadline: p.Reach, OnOverrun: fleet.Overrun(p.OnOverrun),
		Unreachable: fleet.Unreachable(p.Unreachable), OnUnproven: fleet.Unproven(p.Unproven),
	}
}

func vmName(i int) string { return fmt.Sprintf("vm-%d", i+1) }

// vmIndex is which VM of the plan a name stands for; -1 = none.
func (w *World) vmIndex(name string) int {
	for i, vm := range w.spec.VMs {
		if vm == name {
			return i
		}
	}
	return -1
}

// Now implements the clocks of the engine and of control.
func (w *World) Now() time.Time { return start.Add(w.now) }

// since is a moment on the world's clock.
func since(t time.Time) time.Duration { return t.Sub(start) }

// dice are the chances of a VM; of what belongs to none, -1.
func (w *World) dice(vm int) *rand.Rand {
	if vm < 0 {
		vm = len(w.plan.VMs)
	}
	return w.chance[vm]
}

// between is a random duration, stretched where the world is slow.
func (w *World) between(vm int, least, most time.Duration) time.Duration {
	d := least + time.Duration(w.dice(vm).Int64N(int64(most-least)+1))
	return d * time.Duration(max(w.plan.Slow, 1))
}

// say adds a line to the story.
func (w *World) say(format string, args ...any) {
	if w.tell {
		w.lines = append(w.lines, line{w.now, fmt.Sprintf(format, args...)})
	}
}

// violation ends the world: a promise was broken.
func (w *World) violation(rule, format string, args ...any) {
	if w.broken != nil {
		return
	}
	w.broken = &Violation{Rule: rule, Text: fmt.Sprintf(format, args...), At: w.now}
	w.say("BROKEN   %s: %s", rule, w.broken.Text)
}

// afterlife is how long a world goes on after the last thing that happens to it
// from outside, if its operations do not end sooner.
const afterlife = 7 * time.Hour

// mostSteps bounds a world that runs in circles.
const mostSteps = 400_000

// run lets the plan happen and judges it. Nil = every promise was kept.
func (w *World) run() *Violation {
	w.boot(0)
	w.after(w.inputsEnd, w.watchForTheEnd)
	for !w.ended && w.broken == nil && w.step() {
		if w.steps++; w.steps > mostSteps {
			w.violation("ends", "the world runs in circles: %s", w.unfinished())
		}
	}
	if w.broken == nil {
		w.judgeTheEnd()
	}
	w.bury()
	return w.broken
}

// watchForTheEnd ends the world once everything has come to rest.
func (w *World) watchForTheEnd() {
	if w.now > w.inputsEnd+afterlife || w.controller.up && w.atRest() {
		w.ended = true
		return
	}
	w.after(20*time.Second, w.watchForTheEnd)
}
