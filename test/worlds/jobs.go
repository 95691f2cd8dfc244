package worlds

import (
	"context"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// afterlifeOf is what becomes of a job in GitLab beside its runner: who cancels
// and who retries it (facts/gitlab.md 10.2, app/models/ci/processable.rb).
type afterlifeOf struct {
	as         string        // how GitLab shows it ended
	canceledBy string        // who did first
	canceledAt time.Duration // and when
	seen       time.Duration // when GitLab's state, as we were told it last before our cancel, was that it runs
	canceling  time.Duration // since when it is shown canceling; 0 = not
	retry      *job          // the job in its place
	retriedBy  string
	retriedAt  time.Duration
	of         *job // that it was made in the place of
}

// ours is how the world calls what is done with the write token.
const ours = "sluice"

// perPipeline is how many of the plan's jobs are one pipeline's.
const perPipeline = 3

func (j *job) pipeline() int64 {
	for j.after.of != nil {
		j = j.after.of
	}
	return 1 + j.id/perPipeline
}

// name is unique in a pipeline, but for jobs that stand in for each other.
func (j *job) name() int64 {
	for j.after.of != nil {
		j = j.after.of
	}
	return j.id
}

// status is GitLab's word at a moment: a replica may lag.
func (j *job) status(at time.Duration) string {
	switch {
	case j.on == nil || j.assigned > at:
		return "pending"
	case !j.shown(at):
		return j.after.as
	case j.after.canceling != 0 && j.after.canceling <= at:
		return "canceling"
	default:
		return "running"
	}
}

func (w *World) job(id int64) *job {
	for _, j := range w.jobs {
		if j.id == id {
			return j
		}
	}
	return nil
}

// cancelJob is a cancel, whoever asks for it. A runner that has the job ends it.
func (w *World) cancelJob(j *job, by string, force bool) {
	if j.on == nil || !j.shown(w.now) {
		return // of a finished job it changes nothing
	}
	lives := slices.Contains(j.on.jobs, j)
	switch {
	case force && j.after.canceling == 0, !force && j.after.canceling != 0:
		return
	case force:
		j.shownEnd, j.after.as = w.now, "canceled"
	default:
		j.after.canceledBy, j.after.canceledAt = by, w.now
		w.say("gitlab   job %d is canceled by %s", j.id, by)
		if j.after.canceling = w.now; w.plan.GitLab.Abrupt {
			j.shownEnd, j.after.as = w.now, "canceled"
		}
	}
	if by == ours && lives {
		w.violation("cut", "job %d is canceled by us, and its runner works on it; it would have ended by itself at %s", j.id, j.ends)
	}
	if lives && !force {
		w.after(2*time.Second, func() { w.obeysCancel(j) })
	}
}

// obeysCancel is the runner's end of a job that was canceled.
func (w *World) obeysCancel(j *job) {
	m := j.on
	if m == nil || !slices.Contains(m.jobs, j) {
		return
	}
	j.cutBy = "a person's cancel"
	m.jobs = without(m.jobs, j)
	if j.shownEnd == 0 {
		j.shownEnd, j.after.as = w.now, "canceled"
	}
	w.say("%s   job %d ends, as it was canceled", m, j.id)
	w.takeWork(m)
	w.quitIfIdle(m)
}

// retryJob makes a new job in the place of one that has ended, or is about to;
// nil = GitLab refuses.
func (w *World) retryJob(j *job, by string) *job {
	ended := j.on != nil && (!j.shown(w.now) || j.after.canceling != 0)
	if !ended || j.after.retry != nil {
		return nil
	}
	again := &job{id: int64(5000 + len(w.jobs)), length: j.length, after: afterlifeOf{of: j}}
	j.after.retry, j.after.retriedBy, j.after.retriedAt = again, by, w.now
	w.say("gitlab   job %d is retried by %s: job %d", j.id, by, again.id)
	if by == ours {
		w.judgeRetry(j)
	}
	w.jobs, w.pending = append(w.jobs, again), append(w.pending, again)
	w.offer()
	return again
}

// judgeRetry holds our retry to what the world knows: the job never began, or
// it was cut and that is allowed, and nobody else has ended it.
func (w *World) judgeRetry(j *job) {
	switch {
	case j.after.canceledBy == "a person" && j.after.canceledAt >= j.after.seen:
		// Between our reading and our cancel: GitLab answers both alike
		// (docs/what-sluice-cannot-promise.md). It runs once all the same.
	case j.after.canceledBy != ours:
		w.violation("twice", "job %d is retried by us, and %q has ended it", j.id, j.after.canceledBy)
	case j.gaveUp || j.received && j.cutBy == "":
		w.violation("twice", "job %d is retried by us, and has run to its end", j.id)
	case j.cutBy != "" && !j.traced && j.cutAt-(j.ends-j.length) < 3*time.Second:
		// It began for some moments, in the instant of the stop or where somebody has
		// started the runner just before (docs/what-sluice-cannot-promise.md).
	case j.received && !w.spec.Recovery.CutJobs:
		w.violation("twice", "job %d is retried by us, and had begun; it was cut by %s", j.id, j.cutBy)
	}
}

// jobsPort is GitLab for single jobs: read with one token, changed with another.
type jobsPort struct{ w *World }

var _ engine.Jobs = jobsPort{}

// Job implements engine.Jobs.
func (p jobsPort) Job(ctx context.Context, about fleet.Job) (fleet.JobReading, error) {
	g := gitlabPort{w: p.w}
	if err := g.ask(ctx, "job"); err != nil {
		return fleet.JobReading{}, err
	}
	j, at := p.w.job(about.ID), g.asOf()
	r := fleet.JobReading{
		ServerTime: g.serverTime(p.w.now).Truncate(time.Second), Status: j.status(at),
		StartedAt: g.serverTime(j.assigned), PipelineStatus: "running",
	}
	if j.on != nil {
		r.SystemID = j.on.systemID
	}
	if r.Status == "running" {
		j.after.seen = at
	}
	if !j.shown(at) {
		r.FinishedAt = g.serverTime(j.shownEnd)
	}
	p.pipeline(j, at, &r)
	return r, g.reply(ctx, "job")
}

func (p jobsPort) pipeline(j *job, at time.Duration, r *fleet.JobReading) {
	over := true
	for _, other := range p.w.jobs {
		if other.pipeline() != j.pipeline() || other.after.retry != nil && other.after.retriedAt <= at {
			continue
		}
		made := other.after.of == nil || other.after.of.after.retriedAt <= at
		status := other.status(at)
		switch {
		case !made:
			continue
		case other != j && other.name() == j.name() && other.id > j.id:
			r.Newer = other.id
		case other != j && (status == "canceled" || status == "canceling"):
			r.Canceled = append(r.Canceled, other.id)
		}
		over = over && (status == "success" || status == "failed" || status == "canceled")
	}
	if over {
		r.PipelineStatus = "success"
	}
}

// post sends one of the two calls. Its effect may come late, and its answer not
// at all.
func (p jobsPort) post(ctx context.Context, call string, effect func() error) error {
	w, g := p.w, gitlabPort{w: p.w}
	if err := g.ask(ctx, call); err != nil {
		return err
	}
	if late := w.gitlab.latePost; late > 0 {
		w.gitlab.latePost = 0
		w.after(late, func() { _ = effect() })
		_ = w.wait(ctx, min(late, 10*time.Second))
		return fleet.Errorf(fleet.CodeUnavailable, "GitLab did not answer in time")
	}
	err := effect()
	w.point(call+":effect", -1)
	if w.gitlab.losePosts > 0 {
		w.gitlab.losePosts--
		_ = w.wait(ctx, 10*time.Second)
		return fleet.Errorf(fleet.CodeUnavailable, "GitLab did not answer in time")
	}
	if err != nil {
		return err
	}
	return g.reply(ctx, call)
}

func refused() error { return fleet.Errorf(fleet.CodeForbidden, "403 Forbidden") }

// Cancel implements engine.Jobs.
func (p jobsPort) Cancel(ctx context.Context, about fleet.Job, force bool) error {
	return p.post(ctx, "cancel", func() error {
		role := p.w.plan.Fleet.Write
		if role == Reporter || force && role != Maintainer {
			return refused()
		}
		p.w.cancelJob(p.w.job(about.ID), ours, force)
		return nil
	})
}

// Retry implements engine.Jobs.
func (p jobsPort) Retry(ctx context.Context, about fleet.Job) (id int64, err error) {
	err = p.post(ctx, "retry", func() error {
		again := p.w.retryJob(p.w.job(about.ID), ours)
		if again == nil || p.w.plan.Fleet.Write == Reporter {
			return refused()
		}
		id = again.id
		return nil
	})
	if err != nil {
		id = 0
	}
	return id, err
}

// lastOf is the job that a person meddles with: the last that GitLab assigned
// to a VM.
func (w *World) lastOf(vm int) *job {
	var last *job
	for _, j := range w.jobs {
		if j.on != nil && j.on.vm == vm && (last == nil || j.assigned >= last.assigned) {
			last = j
		}
	}
	return last
}

func personCancelsJob(w *World, a Act) {
	if j := w.lastOf(a.VM); j != nil && w.gitlab.answers(w) {
		w.cancelJob(j, "a person", false)
	}
}

func personRetriesJob(w *World, a Act) {
	if j := w.lastOf(a.VM); j != nil && w.gitlab.answers(w) {
		w.cancelJob(j, "a person", false)
		w.retryJob(j, "a person")
	}
}

func personCancelsPipeline(w *World, a Act) {
	last := w.lastOf(a.VM)
	if last == nil || !w.gitlab.answers(w) {
		return
	}
	for _, j := range w.jobs {
		if j.pipeline() == last.pipeline() {
			w.cancelJob(j, "a person", false)
		}
	}
}
