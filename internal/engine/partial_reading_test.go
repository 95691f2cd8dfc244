package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// GitLab's clock is three hours ahead. The delete's answer is lost, the host is
// gone, and GitLab's second answer has jobs and no time of its own: by our clock a
// job that ended well seems to have begun after its runner was gone.
func TestAPartialReadingWithoutATimeRecordsNoJobAsCut(t *testing.T) {
	const ahead = 3 * time.Hour
	w, partial := enginetest.New("a"), false
	w.With = func(f *engine.Fleet) {
		f.GitLab = bentReading{f.GitLab, func(r *fleet.GitLabReading) {
			for i := range r.Running {
				r.Running[i].StartedAt = r.Running[i].StartedAt.Add(ahead)
			}
			r.ServerTime = r.ServerTime.Add(ahead)
			if partial {
				r.Unknown, r.ServerTime = "the managers: 502 Bad Gateway", time.Time{}
			}
		}}
	}
	w.DeleteDelay, w.Lose = 30*time.Second, map[string]int{"delete": 1}
	w.Job("a", 42, 3*time.Minute)
	vm := w.VM("a")
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.OnUnproven = fleet.UnprovenProceed })
	w.Run(2 * time.Minute)
	w.GitLabDown = true
	once(w, "delete:after", func() bool { return true }, func() {
		w.Orphan("a", fleet.Job{ID: 42, StartedAt: vm.Born}) // GitLab has not processed its end
		w.GitLabDown, partial = false, true
	})
	w.Run(9 * time.Minute)
	if op := w.Op(id); op.Drain.Verdict != fleet.VerdictUnproven || op.Delete.Attempt != 2 {
		t.Fatalf("%s with %d attempts\n%s", op.Drain.Verdict, op.Delete.Attempt, w.Story())
	}
	recorded(t, w, id)
}
