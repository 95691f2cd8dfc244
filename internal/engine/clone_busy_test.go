package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// b is a clone of a that could not be identified. The overrun ended a's runner,
// and the provider takes the delete only at the ninth call: a job that begins
// meanwhile under their system_id is the clone's, and is left to it.
func TestALiveJobThatACloneTookAfterTheRunnersEndIsNotCanceled(t *testing.T) {
	for name, begins := range map[string]int{"as the refusals begin": 4, "just before the delete": 9} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a", "b")
			w.With = func(f *engine.Fleet) { f.GitLab = traced{f.GitLab} }
			w.Spec.HasWriteToken, w.Spec.Recovery = true, fleet.RecoveryPolicy{Orphans: true}
			clone := w.VM("b")
			clone.SystemID, clone.Cutoff = w.VM("a").SystemID, true
			w.Job("a", 42, time.Hour)
			calls := 0
			w.Points.At = func(point string) {
				if point != "delete:before" {
					return
				}
				if calls++; calls < 9 {
					w.Refuse["delete"] = []error{fleet.Errorf(fleet.CodeUnavailable, "503 Service Unavailable")}
				}
				if calls == begins {
					lose(w, clone)
				}
			}
			id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.OnOverrun, r.Policy.Cap = fleet.OverrunProceed, time.Minute })
			w.Run(3 * time.Hour)
			op := ended(t, w, id, fleet.PhaseSucceeded, "")
			if l := w.Lost[lostJob]; op.Drain.ExitSeenAt.IsZero() || l == nil || l.Cancels != 0 || l.Retries != 0 {
				t.Errorf("exit seen at %s; %+v\n%s", op.Drain.ExitSeenAt, w.Lost[lostJob], w.Story())
			}
			recorded(t, w, id, 42)
		})
	}
}
