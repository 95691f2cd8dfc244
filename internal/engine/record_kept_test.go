package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// killed lets the unit's main process die of the cause, and GitLab show its job
// running for as long as it does.
func killed(w *enginetest.World, cause string) {
	vm := w.VM("a")
	job := vm.Busy
	vm.Busy, vm.Quit = 0, false
	vm.Unit = fleet.UnitState{ActiveState: "failed", SubState: "failed", Result: cause}
	w.Orphan("a", fleet.Job{ID: job, URL: w.JobURL(job), StartedAt: vm.Born})
}

// keepsRecord fails unless the one job is recorded as cut, and nobody says that it
// was not.
func keepsRecord(t *testing.T, w *enginetest.World, id string) {
	t.Helper()
	recorded(t, w, id, 42)
	if strings.Contains(w.Story(), "after all") {
		t.Errorf("taken back\n%s", w.Story())
	}
}

// The overrun has recorded the job, and before the SIGTERM something else ends
// it. That the runner is down then does not say that its job ended by itself.
func TestAJobThatSomethingCutBeforeTheOrderToEndItStaysRecorded(t *testing.T) {
	for name, cut := range map[string]func(*enginetest.World){
		"a reboot":    func(w *enginetest.World) { w.Reboot("a") },
		"an OOM kill": func(w *enginetest.World) { killed(w, "oom-kill") },
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			w.Job("a", 42, 3*time.Hour)
			id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Cap, r.Policy.OnOverrun = time.Minute, fleet.OverrunProceed })
			once(w, "commit:after", func() bool { return w.Op(id).Drain.Waiver != nil }, func() { cut(w) })
			w.Run(3 * time.Hour)
			ended(t, w, id, fleet.PhaseSucceeded, "")
			keepsRecord(t, w, id)
		})
	}
}

// Others killed the runner in mid-drain, and the provider refuses the delete for
// good: what others cut is no less cut because the VM stays.
func TestAJobThatOthersCutStaysRecordedThoughTheDeleteIsRefused(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 42, 3*time.Hour)
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.Cap = 2 * time.Hour })
	w.Run(2 * time.Minute)
	killed(w, "signal")
	w.Refuse["delete"] = []error{fleet.Errorf(fleet.CodeForbidden, "403 Forbidden").WithHint("grant it")}
	w.Run(2 * time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "403 Forbidden")
	keepsRecord(t, w, id)
	if !slices.ContainsFunc(w.Store.Facts, func(f fleet.Fact) bool { return strings.Contains(f.Text, "the provider refused the delete") }) {
		t.Errorf("the delete was not refused\n%s", w.Story())
	}
}
