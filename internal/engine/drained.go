package engine

import (
	"context"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// drained ends the drain with a proof, or with nothing to drain.
func (w *work) drained(ctx context.Context, d fleet.Decision, s *fleet.Snapshot) (outcome, error) {
	state := &w.op.Drain
	state.Verdict, state.VerdictAt, state.Disagreed = d.Verdict, w.now(), d.Disagreement()
	w.fact(fleet.FactNote, "drained: %s", d.Reason)
	w.byRow(d)
	if s != nil && s.Host != nil {
		state.Proof, state.VerdictAt = s.Host, s.Host.TakenAt
	}
	if s != nil {
		if d.Verdict == fleet.VerdictDirty {
			w.fact(fleet.FactWarning, "containers were left behind: %s", d.Reason)
		}
		if d.CutByOthers {
			w.cut(s.GitLab.Executing(), "cut by others")
		}
	}
	return w.drainEnded(ctx)
}

// drainEnded moves on, with the chores that a drain leaves behind.
func (w *work) drainEnded(ctx context.Context) (outcome, error) {
	w.watchOrphans()
	if w.op.Kind != fleet.KindDrain {
		return move(fleet.EventDrained)
	}
	vm, err := w.row(ctx)
	if err != nil {
		return outcome{}, storeError{err}
	}
	vm.Intake, vm.Incarnation, vm.UpdatedAt = fleet.IntakeDrained, w.op.Old, w.now()
	return move(fleet.EventDrained)
}

// cut records jobs that ended because their VM went away, each once.
func (w *work) cut(jobs []fleet.Job, how string) {
	for _, job := range jobs {
		if slices.ContainsFunc(w.op.CutJobs, func(known fleet.Job) bool { return known.ID == job.ID }) {
			continue
		}
		w.op.CutJobs = append(w.op.CutJobs[:len(w.op.CutJobs):len(w.op.CutJobs)], job)
		w.fact(fleet.FactCut, "%s on %s was cut: %s", job, w.op.Ref(), how)
	}
}

// spareJobs takes back what was recorded for a delete that does not happen, where
// the runner was not told to end its jobs either.
func (w *work) spareJobs() {
	if w.op.Drain.EndOrderedAt.IsZero() {
		w.takeBack()
	}
}

// takeBack says of the jobs that were recorded as cut that they go on.
func (w *work) takeBack() {
	for _, job := range w.op.CutJobs {
		w.fact(fleet.FactNote, "%s on %s was not cut after all", job, w.op.Ref())
	}
	w.op.CutJobs = nil
}

// proceed leaves the drain under a waiver, because a policy says so. The jobs
// that this ends are recorded before anything is done to them.
func (w *work) proceed(ctx context.Context, s *fleet.Snapshot, d fleet.Decision) (outcome, error) {
	w.waive(d.Verdict, d.Row, "policy: "+w.op.Request.Policy.String())
	w.fact(fleet.FactWarning, "going on without a proof: %s", d.Reason)
	w.byRow(d)
	if d.Verdict == fleet.VerdictOverrun {
		w.cut(w.doomed(ctx, s.Host), "the cap passed and the policy is "+string(w.op.Request.Policy.OnOverrun))
	}
	return again()
}

// doomed are the jobs that run still: by GitLab's word, which may be a replica's,
// and by the containers; where that word is not whole, by what was last heard, too.
func (w *work) doomed(ctx context.Context, host *fleet.HostReading) []fleet.Job {
	var jobs []fleet.Job
	whole := false
	if w.f.GitLab != nil && w.op.Old.SystemID != "" {
		r := w.f.GitLab.Read(ctx, w.op.OldSubject(), w.now())
		jobs, whole = r.Executing(), r.Unknown == ""
	}
	if !whole && len(jobs) == 0 {
		jobs = stillSeen(w.op.Drain.Jobs, host)
	}
	if host != nil {
		jobs = merge(jobs, containerJobs(host.Containers))
	}
	return jobs
}

// merge adds the jobs of more that list does not have.
func merge(list, more []fleet.Job) []fleet.Job {
	merged := slices.Clone(list)
	for _, job := range more {
		if !slices.ContainsFunc(merged, func(other fleet.Job) bool { return other.ID == job.ID }) {
			merged = append(merged, job)
		}
	}
	return merged
}

// stillSeen leaves out jobs, last heard of a while ago, that have no container
// any more, where the containers tell whose they are.
func stillSeen(jobs []fleet.Job, host *fleet.HostReading) []fleet.Job {
	if host == nil || !host.ContainersKnown {
		return jobs
	}
	seen := containerJobs(host.Containers)
	if len(seen) == 0 {
		return jobs
	}
	return slices.DeleteFunc(slices.Clone(jobs), func(job fleet.Job) bool {
		return !slices.ContainsFunc(seen, func(other fleet.Job) bool { return other.ID == job.ID })
	})
}

func containerJobs(list []fleet.Container) []fleet.Job {
	var jobs []fleet.Job
	for _, c := range list {
		if c.JobID != 0 {
			jobs = append(jobs, fleet.Job{ID: c.JobID, Name: c.Name})
		}
	}
	return jobs
}
