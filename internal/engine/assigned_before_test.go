package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// design.md section 6: the window of the orphan watch begins with the order to
// stop. While the host cannot be inspected none is given, and its runner takes
// jobs: one that it got minutes before the real stop has reached it.
func TestAJobThatCameWhileTheHostCouldNotBeInspectedIsNoOrphan(t *testing.T) {
	for name, scene := range uninspected() {
		t.Run(name, func(t *testing.T) {
			w, now := enginetest.New("a"), false
			w.Spec.HasWriteToken, w.Spec.Recovery = true, fleet.RecoveryPolicy{Orphans: true}
			w.With = func(f *engine.Fleet) { f.Hosts = silent{f.Hosts, &now} }
			var before int64
			_, vm := scene(w, func(vm *enginetest.VM) { now, before = true, vm.Number })
			w.Run(2 * time.Minute)
			w.OrphanOn(vm, fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
			w.Run(3 * time.Minute)
			untouched(t, w, vm, before)
			now = false
			w.Run(2 * time.Hour)
			if l := w.Lost[lostJob]; vm.Gone.IsZero() || l.Cancels+l.Retries != 0 || told(w, fleet.FactOrphan) != 0 {
				t.Errorf("deleted %t; %+v\n%s", !vm.Gone.IsZero(), l, w.Story())
			}
			closed(t, w)
		})
	}
}
