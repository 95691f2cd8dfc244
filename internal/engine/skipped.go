package engine

import (
	"context"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// recordSkipped records the jobs that a skipped drain is about to end, by
// GitLab's word or else by the containers, before anything is done to them.
func (w *work) recordSkipped(ctx context.Context, reading *fleet.HostReading) {
	if w.op.Drain.Verdict != fleet.VerdictSkipped || len(w.op.CutJobs) > 0 {
		return
	}
	var jobs []fleet.Job
	if w.f.GitLab != nil && reading.Subject.SystemID != "" {
		about := w.op.OldSubject()
		about.SystemID = reading.Subject.SystemID
		if r := w.f.GitLab.Read(ctx, about, w.now()); r.Unknown == "" || len(r.Executing()) > 0 {
			jobs = r.Executing()
		}
	}
	if len(jobs) == 0 { // a glance has no containers
		if seen, err := w.f.look(ctx, w.oldTarget()); err == nil {
			jobs = containerJobs(seen.Containers)
		}
	}
	w.cut(jobs, "the drain was skipped")
}
