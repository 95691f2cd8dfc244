package engine

import (
	"context"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// waivedLimit bounds a look at a host, and one at GitLab, whose answer cannot
// stop a delete under a waiver: both fit between a proof and its call.
const waivedLimit = 2 * time.Second

// recordDoomed records the jobs that a delete under a waiver is about to end,
// where their runner is not known to be gone: by GitLab's word, or else as last
// heard of.
func (w *work) recordDoomed(ctx context.Context, reading *fleet.HostReading) {
	again := w.op.Drain.Doomed
	w.op.Drain.Doomed = true
	if reading != nil && w.op.OldSubject().Check(reading.Subject) == nil {
		if w.op.Old.SystemID == "" {
			w.op.Old.SystemID = reading.Subject.SystemID
		}
		if reading.Unit.Known() && reading.Unit.MainPID == 0 {
			return
		}
	}
	how := "the VM was deleted while its runner may have run (" + string(w.op.Drain.Verdict) + ")"
	switch {
	case w.f.GitLab == nil:
		return
	case w.op.Old.SystemID == "" && again:
		return
	case w.op.Old.SystemID == "":
		w.fact(fleet.FactWarning, "which jobs run on %s cannot be told (its system_id was never seen): they are cut with it", w.op.Ref())
		return
	}
	r := w.readBriefly(ctx, w.op.OldSubject())
	jobs := r.Executing()
	switch exit := w.op.Drain.ExitSeenAt; {
	case reading == nil && !exit.IsZero(): // what it left is the orphan watch's
		if r.ServerTime.IsZero() {
			return // when its jobs began cannot be told by our clock
		}
		end := exit.Add(serverOffset(r) + windowAfter)
		jobs = slices.DeleteFunc(jobs, func(job fleet.Job) bool { return !job.StartedAt.After(end) })
	case r.Unknown == "":
	case len(jobs) > 0 && reading != nil: // a part of them
		jobs = merge(jobs, w.seenBriefly(ctx))
	case len(jobs) == 0 && !again && len(w.op.CutJobs) == 0: // told before else, by a host that may have answered then
		w.fact(fleet.FactWarning, "which jobs run on %s cannot be told (%s): they are cut with it", w.op.Ref(), r.Unknown)
		jobs = w.op.Drain.Jobs
	}
	w.cut(jobs, how)
}

// recordSkipped records the jobs that a skipped drain is about to end, by
// GitLab's word and by the containers, before anything is done to them: before
// intake is stopped, and again after that, for the one that came meanwhile.
func (w *work) recordSkipped(ctx context.Context, reading *fleet.HostReading) {
	if w.op.Drain.Verdict != fleet.VerdictSkipped {
		return
	}
	jobs := w.seenBriefly(ctx) // a glance has no containers
	if w.f.GitLab != nil && reading.Subject.SystemID != "" {
		about := w.op.OldSubject()
		about.SystemID = reading.Subject.SystemID
		jobs = merge(w.readBriefly(ctx, about).Executing(), jobs)
	}
	w.cut(jobs, "the drain was skipped")
}

// readBriefly and seenBriefly name jobs for the record only: what was waived
// does not stand still because GitLab or podman hang.
func (w *work) readBriefly(ctx context.Context, about fleet.Subject) *fleet.GitLabReading {
	ctx, cancel := timeout(ctx, waivedLimit)
	defer cancel()
	return w.f.GitLab.Read(ctx, about, w.now())
}

func (w *work) seenBriefly(ctx context.Context) []fleet.Job {
	ctx, cancel := timeout(ctx, waivedLimit)
	defer cancel()
	seen, err := w.f.look(ctx, w.oldTarget())
	if err != nil {
		return nil
	}
	return containerJobs(seen.Containers)
}
