package engine

import (
	"context"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// While the unit runs it is busy whatever GitLab says. It is asked all the same,
// for the links that people see, and because an outage between stop and exit
// makes an empty trace ambiguous.
const (
	// linksEvery bounds how often it is asked.
	linksEvery = time.Minute
	// listsAtRest is how long the lists of jobs are good while neither the host
	// nor the manager's status speaks against them.
	listsAtRest = 5 * time.Minute
	// linksLimit: links are no reason to be late.
	linksLimit = 3 * time.Second
)

// lookForLinks asks GitLab at most once a minute, and for more than the managers
// only where the jobs may be others than those last read.
func (w *work) lookForLinks(ctx context.Context, s *fleet.Snapshot) {
	d, now, about := &w.op.Drain, w.now(), w.op.OldSubject()
	if now.Sub(d.LinksAt) < linksEvery {
		s.GitLab = &fleet.GitLabReading{Subject: about, Running: d.Jobs} // as last seen, for the text only
		return
	}
	d.LinksAt = now
	ctx, cancel := timeout(ctx, linksLimit)
	defer cancel()
	if now.Sub(d.ListedAt) < listsAtRest && w.sameJobs(s) {
		r := readManager(ctx, w.f, about, now)
		if r.Unknown != "" {
			w.gitlabSaid(s, r)
			return
		}
		if r.Busy() == fleet.BusyActive {
			r.Running, r.Canceling = apart(d.Jobs)
			s.GitLab = r
			return
		}
	}
	r := w.f.GitLab.Read(ctx, about, now.Add(-linksEvery))
	if r.Unknown == "" {
		d.ListedAt = now
	}
	w.gitlabSaid(s, r)
}

// gitlabSaid takes a reading in.
func (w *work) gitlabSaid(s *fleet.Snapshot, r *fleet.GitLabReading) {
	d := &w.op.Drain
	s.GitLab = r
	if r.Unknown != "" && !d.OrderedAt.IsZero() {
		d.GitLabUnsure = true
	}
	if r.Unknown == "" || len(r.Executing()) > 0 {
		d.Jobs = r.Executing()
	}
}

// sameJobs says whether the jobs last listed are those of now, as far as the
// host shows. Once intake is stopped they can only become fewer.
func (w *work) sameJobs(s *fleet.Snapshot) bool {
	d := &w.op.Drain
	if s.Host == nil || d.StoppedAt.IsZero() || d.ListedAt.Before(d.StoppedAt) || len(d.Jobs) == 0 {
		return false
	}
	listed, there := map[int64]bool{}, map[int64]bool{}
	for _, job := range d.Jobs {
		listed[job.ID] = true
	}
	for _, c := range s.Host.Containers {
		there[c.JobID] = true
		if c.JobID != 0 && !listed[c.JobID] {
			return false
		}
	}
	for id := range listed {
		if s.Host.ContainersKnown && slices.Contains(d.JobsSeen, id) && !there[id] {
			return false
		}
	}
	return true
}

// apart tells running jobs from those that are being canceled.
func apart(jobs []fleet.Job) (running, canceling []fleet.Job) {
	for _, job := range jobs {
		if job.Status == "canceling" {
			canceling = append(canceling, job)
		} else {
			running = append(running, job)
		}
	}
	return running, canceling
}

// readManager is the part of a reading that one request gives: the manager, and
// no list of jobs.
func readManager(ctx context.Context, f *Fleet, about fleet.Subject, now time.Time) *fleet.GitLabReading {
	r := &fleet.GitLabReading{Subject: about, TakenAt: now}
	managers, at, err := f.through(fleet.Incarnation{Entry: about.Entry}).Managers(ctx)
	if err != nil {
		r.Unknown = text(err)
		return r
	}
	r.ServerTime = at
	for _, m := range managers {
		switch {
		case m.SystemID != about.SystemID:
		case r.Present:
			r.OtherClaims++
		default:
			r.Present, r.Manager = true, m
		}
	}
	return r
}

// readWatched reads what GitLab shows on a watched system_id: one request where
// its manager runs no job, for that is counted from the very jobs that the
// lists would hold (facts/gitlab.md 1.7); else the lists too. A job that it runs
// and does not list may be an orphan that nobody can name: not clean.
func (r *errand) readWatched(ctx context.Context, about fleet.Subject) *fleet.GitLabReading {
	asked := r.now()
	reading := readManager(ctx, r.f, about, asked)
	if reading.Unknown != "" || reading.Busy() == fleet.BusyIdle {
		return reading
	}
	reading = r.f.GitLab.Read(ctx, about, asked)
	if reading.Busy() == fleet.BusyActive && len(reading.Executing()) == 0 {
		reading.Unknown = "the manager runs a job that is not in its lists: one of a project that the token cannot see, or of a VM that died"
	}
	return reading
}
