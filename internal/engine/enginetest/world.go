package enginetest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Fleet is the name of the world's one fleet.
const Fleet = "f"

// Owner marks the engine's drop-ins.
const Owner = "sluice-test"

// World is one fleet, its cloud and its GitLab.
type World struct {
	clock  sync.Mutex // held to set now, and by who asks for it from elsewhere
	now    time.Time
	Spec   fleet.Spec
	VMs    []*VM // every incarnation ever made, in order of birth
	Store  *Store
	Points *Points
	Meter  *Meter

	BootDelay      time.Duration // from create to a runner that polls
	DeleteDelay    time.Duration // from the call to absence
	DiskLinger     time.Duration // from absence of the instance to that of its disk
	GitLabDown     bool
	TokenDead      bool
	SameSystemID   bool                // a new incarnation gets the old one's system_id
	SameEntry      bool                // a new incarnation uses the old one's runner entry
	Registered     func(*VM)           // is told of each VM that has registered its own entry
	With           func(*engine.Fleet) // may put other adapters in; nil = none
	OwnTime        bool                // limits pass on the world's clock
	NoGitLab       bool
	Refuse         map[string][]error // errors to answer next, by port call ("create", …)
	Lose           map[string]int     // answers to lose after the effect, by port call
	Hang           map[string]bool    // port calls that end only with their context; for synctest
	Bubble         func() time.Time   // synctest's clock, where calls hang
	Blind          map[int]bool       // which describes list nothing, counted from 1
	Calls          map[string]int
	Journal        []string
	Fences         map[string]func() // run once, just before the port call of that name
	Removed        []string          // system_ids of removed managers
	Entries        map[int64]*Entry  // of the VMs' own; nil = they share one
	RemovedEntries []int64
	GitLab         engine.GitLab    // instead of the world's own, if not nil
	Registrar      engine.Registrar // likewise
	Asked          []time.Time      // of each reading of GitLab: after when it had to be taken
	Lost           map[int64]*Lost  // the orphans as GitLab has them
	Cut            []int64          // jobs that were ended by their machine or runner
	born           int
}

// VM is one incarnation.
type VM struct {
	Name, ID, Boot, SystemID string
	Label                    string
	Entry                    int64 // its own runner entry; 0 = the fleet's
	Born, Ready              time.Time
	Gone                     time.Time // zero = there; else when it is absent
	Off, Cutoff              bool      // no guest; unreachable
	Unregisters              bool      // a unit of the host unregisters the token at shutdown
	TokenExpires             time.Time // in config.toml; zero = never
	Never                    bool      // no runner ever started: no system_id, no manager
	Unit                     fleet.UnitState
	DropIn                   fleet.DropIn
	Number                   int64     // of the highest order obeyed
	Busy                     int64     // id of the job that runs; 0 = none
	BusyUntil                time.Time // when the job ends by itself
	Quit                     bool      // SIGQUIT was sent
	StartQueued              bool
	Leftovers                []fleet.Container
	Orphans                  []fleet.Job // GitLab shows them running here
	Contact                  time.Time
	Pids                     int
}

// New makes a world of VMs with running, idle runners.
func New(names ...string) *World {
	w := &World{
		now:    time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Points: &Points{}, Meter: &Meter{}, BootDelay: 20 * time.Second, DeleteDelay: 5 * time.Second,
		Refuse: map[string][]error{}, Lose: map[string]int{},
		Calls: map[string]int{}, Fences: map[string]func(){},
	}
	w.Store = NewStore(w.Points)
	w.Spec = fleet.Spec{
		Name: Fleet, VMs: names, RunnerID: 7, GitLabURL: "https://gitlab.example", Registration: fleet.RegistrationFleet,
		HasGitLab: true, HasRunnerToken: true, Drain: fleet.DefaultDrainPolicy(), MaxUnavailable: 1,
		GateOnline: 10 * time.Minute, Image: "image-2",
		Host: fleet.HostSettings{User: "fedora", RunnerUser: "fedora", Unit: "gitlab-runner.service", ConfigPath: "/etc/gitlab-runner/config.toml"},
	}
	for _, name := range names {
		vm := w.birth(name, "")
		vm.Ready = w.now
		vm.start(w.now)
	}
	return w
}

// Now tells the discrete time. What an adapter has under way may ask, too.
func (w *World) Now() time.Time {
	w.clock.Lock()
	defer w.clock.Unlock()
	return w.now
}

// Advance lets time pass: boots end, jobs end, deletes take effect.
func (w *World) Advance(d time.Duration) {
	w.clock.Lock()
	w.now = w.now.Add(d)
	w.clock.Unlock()
	for _, vm := range w.VMs {
		w.settle(vm)
	}
}

// Engine makes an engine over the world, as a fresh process would.
func (w *World) Engine() *engine.Engine {
	f := &engine.Fleet{Spec: w.Spec, Hosts: hosts{w}, Machines: machines{w}, Registrar: registrar{w}}
	if w.Entries != nil {
		f.Registrar, f.Entries = nil, entries{gitlab{w: w}}
	}
	switch {
	case w.NoGitLab:
		f.HasGitLab = false
	case w.GitLab != nil:
		f.GitLab = w.GitLab
	default:
		f.GitLab = gitlab{w: w}
	}
	if w.Registrar != nil {
		f.Registrar = w.Registrar
	}
	if w.Spec.HasWriteToken {
		f.Jobs = jobs{w}
	}
	if w.With != nil {
		w.With(f)
	}
	return engine.New(engine.Options{
		Fleets: map[string]*engine.Fleet{Fleet: f}, Store: w.Store, Clock: w, Observer: w.Meter, Waker: noWaker{},
		Log: slog.New(slog.DiscardHandler), Owner: Owner,
	})
}

// VM yields the living incarnation of a name; nil if there is none or two.
func (w *World) VM(name string) *VM {
	live := w.Living(name)
	if len(live) != 1 {
		return nil
	}
	return live[0]
}

// Living lists the incarnations of a name that are not absent.
func (w *World) Living(name string) []*VM {
	var live []*VM
	for _, vm := range w.VMs {
		if vm.Name == name && !vm.absent(w.now) {
			live = append(live, vm)
		}
	}
	return live
}

// Job lets a job run on the VM for a time.
func (w *World) Job(name string, id int64, length time.Duration) {
	vm := w.VM(name)
	vm.Busy, vm.BusyUntil = id, w.now.Add(length)
}

// Reboot restarts the VM's guest: /run is empty, the runner starts anew, and a
// job that ran is cut.
func (w *World) Reboot(name string) {
	vm := w.VM(name)
	w.cut(vm)
	vm.Boot = fmt.Sprintf("%s-boot-%d", vm.ID, vm.Pids+1)
	vm.DropIn, vm.Number, vm.StartQueued = fleet.DropIn{}, 0, false
	vm.start(w.now)
}

func (w *World) birth(name, label string) *VM {
	w.born++
	id := fmt.Sprintf("i-%03d", w.born)
	vm := &VM{
		Name: name, ID: id, Boot: id + "-boot-1", SystemID: "s_" + id, Label: label,
		Born: w.now, Ready: w.now.Add(w.BootDelay), Unit: fleet.UnitState{ActiveState: "inactive", Result: "success"},
	}
	for _, before := range w.VMs {
		if w.SameSystemID && before.Name == name {
			vm.SystemID = before.SystemID
		}
	}
	w.VMs = append(w.VMs, vm)
	w.register(vm)
	return vm
}

// settle brings one VM up to the present moment.
func (w *World) settle(vm *VM) {
	if vm.absent(w.now) {
		if vm.Busy != 0 {
			w.cut(vm)
		}
		return
	}
	if !vm.Ready.After(w.now) && vm.Pids == 0 && !vm.Off {
		vm.start(w.now)
	}
	if vm.Busy != 0 && !vm.BusyUntil.After(w.now) {
		vm.Busy = 0
	}
	if vm.Quit && vm.Busy == 0 && vm.Unit.MainPID != 0 {
		vm.Unit.ActiveState, vm.Unit.SubState, vm.Unit.MainPID, vm.Unit.Result = "inactive", "dead", 0, "success"
		vm.Quit = false
	}
	if vm.StartQueued && vm.Unit.MainPID == 0 {
		vm.start(w.now)
	}
	if vm.Unit.MainPID != 0 {
		vm.Contact = w.now
	}
}

func (w *World) cut(vm *VM) {
	if vm.Busy != 0 {
		w.Cut = append(w.Cut, vm.Busy)
		vm.Busy = 0
	}
}

func (vm *VM) start(now time.Time) {
	vm.Pids++
	vm.Unit = fleet.UnitState{ActiveState: "active", SubState: "running", Result: "success", MainPID: 1000 + vm.Pids}
	vm.Quit, vm.StartQueued, vm.Contact = false, false, now
}

func (vm *VM) absent(now time.Time) bool { return !vm.Gone.IsZero() && !vm.Gone.After(now) }

// Serving says whether the VM's runner asks for jobs.
func (vm *VM) Serving() bool { return vm.Unit.ActiveState == "active" && !vm.DropIn.Present }

func (w *World) journal(format string, args ...any) {
	w.Journal = append(w.Journal, w.now.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// before counts a port call, runs its fence, and yields an error to answer.
func (w *World) before(call string) error {
	w.Points.Pass(call + ":before")
	w.Calls[call]++
	if fence := w.Fences[call]; fence != nil {
		delete(w.Fences, call)
		fence()
	}
	if list := w.Refuse[call]; len(list) > 0 {
		w.Refuse[call] = list[1:]
		return list[0]
	}
	return nil
}

// ask is before for calls that may hang until their context ends.
func (w *World) ask(ctx context.Context, call string) error {
	if err := w.before(call); err != nil || !w.Hang[call] {
		return err
	}
	began := w.Bubble()
	<-ctx.Done()
	w.Advance(w.Bubble().Sub(began))
	return fleet.Errorf(fleet.CodeUnavailable, "%s did not answer: %w", call, ctx.Err())
}

// Overlook makes the provider list nothing in the nth describe and after it.
func (w *World) Overlook(nth, times int) {
	w.Blind = map[int]bool{}
	for i := range times {
		w.Blind[nth+i] = true
	}
}

// answer is called after an effect: a crash point, and the place where an
// answer gets lost.
func (w *World) answer(call string) error {
	w.Points.Pass(call + ":after")
	if w.Lose[call] > 0 {
		w.Lose[call]--
		return fleet.Errorf(fleet.CodeUnavailable, "the answer to %s was lost", call)
	}
	return nil
}

type noWaker struct{}
