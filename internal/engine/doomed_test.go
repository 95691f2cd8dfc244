package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// proceeding yields a delete of a without a proof from GitLab: its runner was
// seen to end at exit, and the provider does not take the delete.
func proceeding(t *testing.T) (w *enginetest.World, id string, exit time.Time) {
	t.Helper()
	w = enginetest.New("a")
	refuse(w, "delete", fleet.CodeUnavailable)
	w.Fences["stop"] = func() { w.GitLabDown = true }
	id = w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.OnUnproven = fleet.UnprovenProceed })
	w.Run(30 * time.Minute)
	d := w.Op(id).Drain
	if d.Verdict != fleet.VerdictUnproven || d.ExitSeenAt.IsZero() {
		t.Fatalf("%s, exit seen at %s\n%s", d.Verdict, d.ExitSeenAt, w.Story())
	}
	return w, id, d.ExitSeenAt
}

// The delete fails for an hour, in which the host is rebooted, its runner takes a
// job, and the host is lost: the exit that was seen says nothing about that job.
// What is left of before is the orphan watch's.
func TestAJobOfARunnerThatCameBackBehindALostHostIsRecordedAsCut(t *testing.T) {
	w, id, exit := proceeding(t)
	vm := w.VM("a")
	w.OrphanOn(vm, fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: exit})
	w.Run(30 * time.Minute)
	w.Reboot("a")
	vm.Cutoff = true
	w.OrphanOn(vm, fleet.Job{ID: 43, URL: w.JobURL(43), StartedAt: w.Now()})
	w.GitLabDown = false
	w.Run(30 * time.Minute)
	w.Refuse["delete"] = nil
	w.Run(2 * time.Hour)
	op := w.Op(id)
	if op.Phase != fleet.PhaseSucceeded || len(op.CutJobs) != 1 || op.CutJobs[0].ID != 43 {
		t.Errorf("%s, recorded as cut: %v\n%s", op.Phase, op.CutJobs, w.Story())
	}
	if told(w, fleet.FactOrphan) != 1 {
		t.Errorf("the job of the stop is not told of as an orphan, once\n%s", w.Story())
	}
	closed(t, w)
}
