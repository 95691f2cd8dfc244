package engine

import (
	"context"
	"slices"
	"time"

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

// doomed are the jobs that run still: by GitLab's word, and where that is not
// whole by what was last heard and what containers there are, too.
func (w *work) doomed(ctx context.Context, host *fleet.HostReading) []fleet.Job {
	var jobs []fleet.Job
	whole := false
	if w.f.GitLab != nil && w.op.Old.SystemID != "" {
		r := w.f.GitLab.Read(ctx, w.op.OldSubject(), w.now())
		jobs, whole = r.Executing(), r.Unknown == ""
	}
	switch {
	case whole && len(jobs) > 0:
		return jobs
	case !whole && len(jobs) == 0:
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

// endJobs runs under a waiver: where the host can be reached, the runner is
// told to end its jobs (SIGTERM), so that GitLab shows them failed within
// seconds and not running for an hour; then, at most 15 s later, on we go.
func (w *work) endJobs(ctx context.Context) (outcome, error) {
	d := &w.op.Drain
	if d.Verdict == fleet.VerdictUnreachable || d.Verdict == fleet.VerdictUnproven {
		return w.drainEnded(ctx)
	}
	reading, err := w.f.glance(ctx, w.oldTarget())
	if err != nil {
		if ctx.Err() != nil {
			return outcome{}, err
		}
		return w.notReached(ctx, err)
	}
	d.UnreachableSince = time.Time{}
	if w.op.OldSubject().Check(reading.Subject) != nil {
		return w.replaced("the host is another one")
	}
	if w.op.Old.SystemID == "" { // no preflight has looked: whose orphans and manager they are
		w.op.Old.SystemID = reading.Subject.SystemID
	}
	if err := w.refuseUnseen(ctx); err != nil {
		return outcome{}, err
	}
	now := w.now()
	switch {
	case reading.Unit.Stopped() && reading.DropIn.Effective:
		if reading.Unit.Result == "success" && !d.Reopened { // else its jobs did not end by themselves
			w.spareJobs()
		}
		d.ExitSeenAt = first(d.ExitSeenAt, now)
		return w.drainEnded(ctx)
	case !d.EndedAt.IsZero() && now.Sub(d.EndedAt) >= fleet.EndGrace && !w.op.Kind.Deletes():
		if reading.Unit.ActiveState == "deactivating" { // another one, perhaps, that somebody has started
			w.cut(w.doomed(ctx, nil), "the cap passed and the policy is "+string(w.op.Request.Policy.OnOverrun))
		}
		return w.orderEnd(ctx, reading) // a drain is done when the runner has ended
	case !d.EndedAt.IsZero() && now.Sub(d.EndedAt) >= fleet.EndGrace:
		w.fact(fleet.FactWarning, "the runner did not end within %s of SIGTERM", fleet.EndGrace)
		return w.drainEnded(ctx)
	case !d.EndedAt.IsZero():
		then := "it is told again"
		if w.op.Kind.Deletes() {
			then = "the delete goes on"
		}
		w.waitsFor("the runner ends its jobs", d.EndedAt.Add(fleet.EndGrace), then)
		return w.awaitExit(ctx, reading.Unit.MainPID, d.EndedAt.Add(fleet.EndGrace))
	default:
		return w.orderEnd(ctx, reading)
	}
}

// notReached goes on where the host does not answer when its jobs are to be
// ended: with the delete, or, in a drain, for as long as a host may be out of
// reach.
func (w *work) notReached(ctx context.Context, err error) (outcome, error) {
	d, why := &w.op.Drain, "the runner could not be told to end its jobs: "+text(err)
	d.UnreachableSince = first(d.UnreachableSince, w.now())
	until := d.UnreachableSince.Add(w.op.Request.Policy.ReachDeadline)
	proceeds := w.op.Request.Policy.Unreachable == fleet.UnreachableProceed
	then := "the drain fails"
	if proceeds {
		then = "the drain is done without knowing that the runner has ended"
	}
	switch over := !w.now().Before(until); {
	case w.op.Kind.Deletes(), over && proceeds:
		w.fact(fleet.FactWarning, "%s", why)
		return w.drainEnded(ctx)
	case over:
		return w.fail(fleet.Errorf(fleet.CodeUnavailable, "%s: %s", w.op.Ref(), why).
			WithHint("intake is given back once the host answers; ask again then"))
	}
	w.waitsFor(why, until, then)
	return wait(2 * time.Second)
}

// orderEnd makes sure that the runner will not come back, then ends its jobs.
func (w *work) orderEnd(ctx context.Context, reading *fleet.HostReading) (outcome, error) {
	d := &w.op.Drain
	w.recordSkipped(ctx, reading)
	// A start that an earlier operation has queued behind the stop is called off by
	// a stop of our own; without one the runner would be back as soon as it ended.
	if !reading.DropIn.Effective || reading.Unit.ActiveState != "deactivating" || d.StoppedAt.IsZero() {
		d.Reopened = d.Reopened || !d.StoppedAt.IsZero() && !reading.DropIn.Effective // a reboot, perhaps
		if d.StoppedPastCap {
			return w.drainEnded(ctx) // tried already; the delete must not wait for ever
		}
		d.OrderedAt = first(d.OrderedAt, w.now()) // it may take effect, and its answer not be written
		after, err := w.giveStop(ctx, reading.Subject.BootID)
		if isStore(err) {
			return outcome{}, err
		}
		d.StoppedPastCap = true
		if err != nil {
			w.fact(fleet.FactWarning, "intake could not be stopped before the delete: %s", text(err))
			return w.drainEnded(ctx)
		}
		d.StoppedAt = first(d.StoppedAt, w.now())
		w.op.Old.BootID = after.Subject.BootID
		return again()
	}
	d.EndOrderedAt = w.now()
	if err := w.order(ctx, fleet.OrderEnd, reading.Subject.BootID); err != nil {
		return outcome{}, storeError{err}
	}
	err := w.f.Hosts.EndJobs(ctx, w.oldTarget(), w.op.Order)
	switch code := fleet.CodeOf(err); {
	case err != nil && ctx.Err() == nil && (code == fleet.CodeForbidden || code == fleet.CodeInvalid):
		return w.notTold(ctx, err)
	case err != nil: // it may have been told, or a reboot was quicker
		w.fact(fleet.FactWarning, "the runner could not be told to end its jobs: %s", text(err))
	default:
		w.fact(fleet.FactNote, "the runner was told to end its jobs (SIGTERM)")
	}
	d.EndedAt = w.now()
	return again()
}

// notTold goes on where the host has refused the order to end the jobs: a delete
// ends them in any case, a drain waits for them.
func (w *work) notTold(ctx context.Context, err error) (outcome, error) {
	w.op.Drain.EndOrderedAt, w.op.Order.Verb = time.Time{}, fleet.OrderStop // the last that it obeyed
	if w.op.Kind.Deletes() {
		w.fact(fleet.FactWarning, "the runner could not be told to end its jobs: %s", text(err))
		return w.drainEnded(ctx)
	}
	w.waitsFor("the runner could not be told to end its jobs: "+text(err), time.Time{}, "it is told again, unless they end by themselves before")
	return wait(fleet.EndGrace)
}
