package engine_test

import (
	"context"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// uninspected are the ways to a first stop past preflight's look at the host.
// Each spoils the VM that comes by it as soon as there is one, and yields what
// works on it.
func uninspected() map[string]func(w *enginetest.World, spoil func(*enginetest.VM)) (id string, vm *enginetest.VM) {
	return map[string]func(*enginetest.World, func(*enginetest.VM)) (string, *enginetest.VM){
		"overlooked": func(w *enginetest.World, spoil func(*enginetest.VM)) (string, *enginetest.VM) {
			w.Ask(fleet.KindRecreate, "a") // since then its row knows the instance and its boot
			w.Run(time.Hour)
			vm := w.VM("a")
			spoil(vm)
			w.Overlook(w.Calls["describe"]+1, 2) // by preflight, and by the drain
			return w.Ask(fleet.KindDelete, "a"), vm
		},
		"a second VM": func(w *enginetest.World, spoil func(*enginetest.VM)) (string, *enginetest.VM) {
			id, twin := twinned(w)
			spoil(twin)
			return id, twin
		},
		"off, then boots": func(w *enginetest.World, spoil func(*enginetest.VM)) (string, *enginetest.VM) {
			vm := w.VM("a")
			spoil(vm)
			vm.Off = true
			id := w.Ask(fleet.KindDelete, "a")
			once(w, "commit:after", func() bool { return w.Op(id).Phase == fleet.PhaseDraining }, func() {
				vm.Off = false
				w.Reboot("a")
			})
			return id, vm
		},
	}
}

// untouched fails unless the VM serves, and was given no order since it had the
// number before.
func untouched(t *testing.T, w *enginetest.World, vm *enginetest.VM, before int64) {
	t.Helper()
	if vm.Number != before || !vm.Serving() || !vm.Gone.IsZero() {
		t.Errorf("order %d, serving %t, deleted %t\n%s", vm.Number, vm.Serving(), !vm.Gone.IsZero(), w.Story())
	}
}

// Promise 2: a host that must be refused is refused before it is given any order,
// also where preflight could not look at it. Seed 56514 of the worlds.
func TestAHostThatPreflightCouldNotInspectIsRefusedBeforeItsFirstStop(t *testing.T) {
	for name, scene := range uninspected() {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			var before int64
			id, vm := scene(w, func(vm *enginetest.VM) { vm.Unregisters, before = true, vm.Number })
			w.Run(time.Hour)
			untouched(t, w, vm, before)
			if len(w.Living("a")) == 1 { // of a second VM, the operation is not about it
				ended(t, w, id, fleet.PhaseFailed, "unregister")
				return
			}
			vm.Unregisters = false
			w.Run(time.Hour)
			if vm.Gone.IsZero() || w.VM("a") == nil || !w.VM("a").Serving() {
				t.Errorf("mended, it is there still\n%s", w.Story())
			}
		})
	}
}

// silent is a host whose systemd does not answer an inspection while it is told so.
type silent struct {
	engine.Hosts
	now *bool
}

func (s silent) Inspect(ctx context.Context, t engine.Target) (*fleet.HostFacts, error) {
	f, err := s.Hosts.Inspect(ctx, t)
	if err == nil && *s.now {
		f.SystemdError = "Failed to connect to bus"
	}
	return f, err
}

// Seed 56514 of the worlds: what may pass is waited out.
func TestTheFirstStopWaitsUntilTheHostCanBeInspected(t *testing.T) {
	for name, scene := range uninspected() {
		t.Run(name, func(t *testing.T) {
			w, now := enginetest.New("a"), false
			w.With = func(f *engine.Fleet) { f.Hosts = silent{f.Hosts, &now} }
			var before int64
			id, vm := scene(w, func(vm *enginetest.VM) { now, before = true, vm.Number })
			w.Run(5 * time.Minute)
			untouched(t, w, vm, before)
			now = false
			w.Run(time.Hour)
			if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || vm.Gone.IsZero() || len(w.Cut) != 0 {
				t.Errorf("%s, deleted %t\n%s", op.Phase, !vm.Gone.IsZero(), w.Story())
			}
		})
	}
}
