package chaos

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// acts says what each phase commits within itself and does to the world: the
// effects of every step. A phase that is not here fails the test below.
var acts = map[fleet.Phase][]string{
	fleet.PhaseQueued:    {},
	fleet.PhasePreflight: {},
	fleet.PhaseDraining:  {"commit order stop", "stop", "await"},
	fleet.PhaseDeleting:  {"commit intent", "delete"},
	fleet.PhaseCreating:  {"commit token", "create"},
	fleet.PhaseVerifying: {},
	fleet.PhaseRestoring: {"commit order start", "start", "commit order release", "release"},
}

// lives are the operations whose every point is tried, with the phases that
// they pass, in a world with one running job.
var lives = []struct {
	name   string
	kind   fleet.Kind
	mayEnd func(*fleet.Operation) bool // when the job may end
	change func(*fleet.Request)
	passes []fleet.Phase
	check  func(*testing.T, *world)
}{
	{"recreate", fleet.KindRecreate, isAwaited, nil, path(fleet.KindRecreate), isReplaced},
	{"delete", fleet.KindDelete, isAwaited, nil, path(fleet.KindDelete), isGone},
	{"drain", fleet.KindDrain, isAwaited, nil, path(fleet.KindDrain), isDrained},
	{"abort at the cap", fleet.KindRecreate, isStartedAnew, func(r *fleet.Request) {
		r.Policy.Cap, r.Policy.OnOverrun = capToPass(), fleet.OverrunAbort
	}, []fleet.Phase{fleet.PhasePreflight, fleet.PhaseDraining, fleet.PhaseRestoring, fleet.PhaseFailed}, isServing},
}

// capToPass is a cap that passes soon, but not before the drain has come to wait on the
// host, which a busy machine takes seconds for.
func capToPass() time.Duration {
	if raceDetector {
		return 8 * time.Second
	}
	return 3 * time.Second
}

// isAwaited says that the drain is about to wait on the host for the exit.
func isAwaited(op *fleet.Operation) bool {
	return op.Phase.Finished() || strings.HasPrefix(op.Waiting, "the runner process still runs")
}

// isStartedAnew says that the runner was told to start again after its job.
func isStartedAnew(op *fleet.Operation) bool {
	return op.Phase.Finished() || !op.Restore.StartedAt.IsZero()
}

// path walks the phase table along the events of an operation that meets no
// trouble.
func path(kind fleet.Kind) []fleet.Phase {
	var phases []fleet.Phase
	at := fleet.PhaseQueued
	for !at.Finished() {
		for _, event := range []fleet.Event{
			fleet.EventAdmitted, fleet.EventChecked, fleet.EventDrained, fleet.EventDeleted, fleet.EventCreated, fleet.EventVerified, fleet.EventRestored,
		} {
			if next, err := fleet.Transition(fleet.Position{Kind: kind, Phase: at}, event); err == nil {
				at = next
				break
			}
		}
		phases = append(phases, at)
	}
	return phases
}

// stride passes over points under the race detector: the processes that are
// killed are what is tested, and every one of them takes ten times as long.
func stride() int {
	if raceDetector {
		return 6
	}
	return 1
}

// points lists where an operation that passes these phases can be killed. The
// admission from the queue is a commit of the store's own, tried there.
func points(passes []fleet.Phase) []string {
	var names []string
	for i, phase := range passes {
		if i > 0 {
			names = append(names, "commit "+string(phase))
		}
		names = append(names, acts[phase]...)
	}
	var list []string
	for _, name := range names {
		list = append(list, name+":before", name+":after")
	}
	return list
}

func TestThePhaseTableHasNoPhaseWithoutAPlaceInTheMatrix(t *testing.T) {
	for _, arrow := range fleet.PhaseTable() {
		if _, ok := acts[arrow.From]; !ok {
			t.Errorf("phase %s is not in the matrix", arrow.From)
		}
	}
}

// kill -9, before and after the effect of every step.
func TestKillingSluiceAtAnyPointChangesNothing(t *testing.T) {
	var mu sync.Mutex
	var gaps []time.Duration
	t.Cleanup(func() { report(t, gaps) })
	for _, life := range lives {
		all := points(life.passes)
		for i := 0; i < len(all); i += stride() {
			point := all[i]
			t.Run(life.name+"/"+point, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, life.mayEnd)
				w.ask(life.kind, life.change)
				killed, _ := w.live(point, "")
				if !killed {
					t.Fatalf("point %s was never passed\n%s", point, w.story())
				}
				_, moving := w.live("", "")
				mu.Lock()
				gaps = append(gaps, moving)
				mu.Unlock()
				life.check(t, w)
			})
		}
	}
}

func report(t *testing.T, gaps []time.Duration) {
	slices.Sort(gaps)
	if n := len(gaps); n > 0 {
		t.Logf("%d kills; restart → moving: median %s, worst %s", n, gaps[n/2], gaps[n-1])
	}
}

func TestALostAnswerChangesNothing(t *testing.T) {
	for _, life := range lives {
		for _, phase := range life.passes {
			for _, act := range acts[phase] {
				if act == "await" || act[:3] == "com" {
					continue // a wait has no effect; a commit has no answer to lose
				}
				t.Run(life.name+"/"+act, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, life.mayEnd)
					w.ask(life.kind, life.change)
					w.live("", act)
					life.check(t, w)
				})
			}
		}
	}
}

func (w *world) ended(t *testing.T, want fleet.Phase) {
	t.Helper()
	if op := w.operation(); op.Phase != want {
		t.Errorf("%s: %s %s\n%s", op.Phase, op.Waiting, op.ErrMessage, w.story())
	}
}

// jobRan fails unless the job ended by itself, after_script included, and
// nothing hurt the token.
func (w *world) jobRan(t *testing.T) {
	t.Helper()
	ledger := w.GitLab().Ledger()
	record, _ := w.GitLab().Job(w.job)
	if record.Verdict != simgitlab.VerdictSucceeded || ledger.Cut != 0 || len(ledger.Damage) != 0 {
		t.Errorf("the job %s (%s), damage %v\n%s", record.Verdict, record.FailureReason, ledger.Damage, w.story())
	}
}

func isReplaced(t *testing.T, w *world) {
	t.Helper()
	w.ended(t, fleet.PhaseSucceeded)
	w.jobRan(t)
	summary := w.Summary()
	if err := w.DamageTo(vm); err != nil || len(summary.Strays) > 0 {
		t.Errorf("%v, strays %v\n%s", err, summary.Strays, w.story())
	}
}

func isGone(t *testing.T, w *world) {
	t.Helper()
	w.ended(t, fleet.PhaseSucceeded)
	w.jobRan(t)
	if in, disks := w.Cloud().Instances(), w.Cloud().Disks(); len(in)+len(disks) > 0 {
		t.Errorf("left: %v %v\n%s", in, disks, w.story())
	}
}

func isDrained(t *testing.T, w *world) {
	t.Helper()
	w.ended(t, fleet.PhaseSucceeded)
	w.jobRan(t)
	if in := w.Cloud().Instances(); len(in) != 1 || len(w.Host(vm).Containers()) != 0 {
		t.Errorf("instances %v\n%s", in, w.story())
	}
}

// isServing fails unless the old VM takes jobs as before.
func isServing(t *testing.T, w *world) {
	t.Helper()
	w.ended(t, fleet.PhaseFailed)
	w.jobRan(t)
	next := w.GitLab().Enqueue(simgitlab.JobSpec{Duration: 100 * time.Millisecond})
	deadline := time.Now().Add(10 * time.Second)
	for {
		record, _ := w.GitLab().Job(next)
		if record.Verdict == simgitlab.VerdictSucceeded {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the VM takes no job: %s\n%s", record.Verdict, w.story())
		}
		<-time.After(20 * time.Millisecond)
	}
}
