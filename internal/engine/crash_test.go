package engine_test

import (
	"fmt"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// scenario is one whole run whose every crash point is tried.
type scenario struct {
	name  string
	kind  fleet.Kind
	setup func(*enginetest.World)
	ask   func(*fleet.Request)
	check func(*testing.T, *enginetest.World, string, string)
}

func scenarios() []scenario {
	busy := func(w *enginetest.World) { w.Job("a", 42, 90*time.Second) }
	return []scenario{
		{"recreate", fleet.KindRecreate, busy, nil, func(t *testing.T, w *enginetest.World, id, old string) {
			replaced(t, w, id, "a", old)
			if len(w.VMs) != 3 { // a, b, and the new a
				t.Fatalf("%d incarnations were ever made, want 3\n%s", len(w.VMs), w.Story())
			}
		}},
		{"delete", fleet.KindDelete, busy, nil, func(t *testing.T, w *enginetest.World, id, _ string) {
			if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || len(w.Living("a")) != 0 || len(w.Cut) != 0 {
				t.Fatalf("%s, %d left, cut %v\n%s", op.Phase, len(w.Living("a")), w.Cut, w.Story())
			}
		}},
		{"drain", fleet.KindDrain, busy, nil, func(t *testing.T, w *enginetest.World, id, _ string) {
			if op, vm := w.Op(id), w.VM("a"); op.Phase != fleet.PhaseSucceeded || vm.Unit.MainPID != 0 || !vm.DropIn.Effective || len(w.Cut) != 0 {
				t.Fatalf("%s, unit %s, cut %v\n%s", op.Phase, vm.Unit.ActiveState, w.Cut, w.Story())
			}
		}},
		{
			"abort at the cap", fleet.KindRecreate, func(w *enginetest.World) { w.Job("a", 42, 20*time.Minute) },
			func(r *fleet.Request) { r.Policy.OnOverrun = fleet.OverrunAbort },
			func(t *testing.T, w *enginetest.World, id, old string) {
				if op, vm := w.Op(id), w.VM("a"); op.Phase != fleet.PhaseFailed || vm == nil || vm.ID != old || !vm.Serving() || len(w.Cut) != 0 {
					t.Fatalf("%s, cut %v\n%s", op.Phase, w.Cut, w.Story())
				}
			},
		},
		{
			"proceed at the cap", fleet.KindRecreate, func(w *enginetest.World) { w.Job("a", 42, 20*time.Minute) }, nil,
			func(t *testing.T, w *enginetest.World, id, _ string) {
				op := w.Op(id)
				if op.Phase != fleet.PhaseSucceeded || len(w.Living("a")) != 1 || len(w.Cut) != 1 || len(op.CutJobs) != 1 {
					t.Fatalf("%s, cut %v, recorded %v\n%s", op.Phase, w.Cut, op.CutJobs, w.Story())
				}
			},
		},
	}
}

func (s scenario) world() (w *enginetest.World, id, old string) {
	w = enginetest.New("a", "b")
	s.setup(w)
	old = w.VM("a").ID
	var asks []func(*fleet.Request)
	if s.ask != nil {
		asks = append(asks, s.ask)
	}
	return w, w.Ask(s.kind, "a", asks...), old
}

// stride passes over points where the race detector, which has nothing to find
// in one goroutine, makes every run ten times as long.
func stride(under int) int {
	if raceDetector {
		return under
	}
	return 1
}

// Promise 3: killed at any instant, before or after any
// effect or commit, the run ends as if nothing had happened.
func TestACrashAtAnyInstantChangesNothing(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			whole, id, old := s.world()
			whole.Run(2 * time.Hour)
			s.check(t, whole, id, old)
			points := len(whole.Points.Passed)
			for die := 1; die <= points; die += stride(31) {
				w, id, old := s.world()
				w.Points.Die = die
				w.Run(2 * time.Hour)
				if !t.Run(fmt.Sprintf("%d %s", die, w.Points.Passed[die-1]), func(t *testing.T) { s.check(t, w, id, old) }) {
					return
				}
			}
			t.Logf("%d crash points", points)
		})
	}
}

// The answer to any effect may be lost: the effect happened, the call failed.
func TestALostAnswerChangesNothing(t *testing.T) {
	for _, s := range scenarios() {
		for _, call := range []string{"stop", "delete", "create", "start", "release", "end", "deregister"} {
			for _, times := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s/%s lost %d", s.name, call, times), func(t *testing.T) {
					w, id, old := s.world()
					w.Lose[call] = times
					w.Run(2 * time.Hour)
					s.check(t, w, id, old)
				})
			}
		}
	}
}

// Errors of every kind that may pass, from every port, at every call.
func TestFailuresThatPassAreWaitedOut(t *testing.T) {
	for _, s := range scenarios() {
		for _, call := range []string{"describe", "prepare", "check", "list", "inspect", "look", "glance", "stop", "await", "read", "managers", "delete", "remains", "create", "start", "release"} {
			t.Run(s.name+"/"+call, func(t *testing.T) {
				w, id, old := s.world()
				for range 3 {
					w.Refuse[call] = append(w.Refuse[call], fleet.Errorf(fleet.CodeUnavailable, "503 for now"))
				}
				w.Run(2 * time.Hour)
				s.check(t, w, id, old)
			})
		}
	}
}
