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
	jobs := containerJobs(reading.Containers)
	if w.f.GitLab != nil && reading.Subject.SystemID != "" {
		about := w.op.OldSubject()
		about.SystemID = reading.Subject.SystemID
		if r := w.f.GitLab.Read(ctx, about, w.now()); r.Unknown == "" || len(r.Executing()) > 0 {
			jobs = r.Executing()
		}
	}
	w.cut(jobs, "the drain was skipped")
}
