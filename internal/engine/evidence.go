package engine

import (
	"context"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// snapshot gathers the evidence for one decision. GitLab is asked after the
// process is gone, when the host cannot be reached, and at most once a minute
// for the links that people see (design.md section 4.3).
func (w *work) snapshot(ctx context.Context) (*fleet.Snapshot, error) {
	d := &w.op.Drain
	s := &fleet.Snapshot{
		Expected: w.op.OldSubject(), Policy: w.op.Request.Policy,
		Deadline: d.Deadline, HardCap: d.HardCap, NoGitLab: w.f.GitLab == nil,
		StoppedPastCap: d.StoppedPastCap,
	}
	seen, err := w.lookAtHost(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case s.Host == nil:
		w.lookAtProvider(ctx, s)
		w.lookAtGitLab(ctx, s)
	case seen && s.Host.Unit.Stopped() && w.op.Kind.Deletes():
		w.together(func() { w.lookAtGitLab(ctx, s) }, func() { w.lookAhead(ctx) })
	default:
		if w.op.Old.BootID == "" || differ(w.op.Old.BootID, s.Host.Subject.BootID) {
			w.lookAtProvider(ctx, s) // nobody has looked at this boot yet: is it the instance's?
		}
		w.lookAtGitLab(ctx, s)
	}
	s.Now = w.now()
	s.UnreachableSince, s.StoppedSince, s.LeftoversSince = d.UnreachableSince, d.ExitSeenAt, d.LeftoversSince
	return s, nil
}

// lookAtHost reads the host and keeps the moments that the table asks for.
// Evidence that a host could not be reached is a nil reading, not an error. seen:
// the reading is of when the process ended.
func (w *work) lookAtHost(ctx context.Context, s *fleet.Snapshot) (seen bool, err error) {
	d := &w.op.Drain
	if w.op.Old.Instance == "" || w.op.OldAddr == "" {
		s.HostErr = "no instance or address is known"
	} else {
		s.Host, seen, err = w.lookAtOldHost(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return false, err
			}
			s.HostErr = text(err)
		}
	}
	now := w.now()
	if s.Host == nil {
		d.UnreachableSince, d.ExitSeenAt, d.LeftoversSince = first(d.UnreachableSince, now), time.Time{}, time.Time{}
		return false, nil
	}
	d.UnreachableSince = time.Time{}
	if w.op.Old.SystemID == "" { // preflight could not look at it: a stray has none, and a VM may have been off
		w.op.Old.SystemID = s.Host.Subject.SystemID
	}
	w.askEntry(ctx)
	s.Expected = w.op.OldSubject()
	d.ExitSeenAt = since(d.ExitSeenAt, now, s.Host.Complete() && s.Host.Unit.Stopped() && s.Host.DropIn.Effective)
	d.LeftoversSince = since(d.LeftoversSince, now, !d.ExitSeenAt.IsZero() && len(s.Host.Containers) > 0)
	for _, c := range s.Host.Containers {
		if c.JobID != 0 && !slices.Contains(d.JobsSeen, c.JobID) {
			d.JobsSeen = append(slices.Clone(d.JobsSeen), c.JobID)
		}
	}
	return seen, nil
}

// lookAtProvider asks whether there is still a guest; not knowing is nil.
func (w *work) lookAtProvider(ctx context.Context, s *fleet.Snapshot) {
	list, err := w.describe(ctx)
	if err != nil {
		s.HostErr += "; the provider was asked: " + text(err)
		return
	}
	s.Provider = w.providerReading(list)
}

// lookAtGitLab reads GitLab when its word counts or its links are wanted.
func (w *work) lookAtGitLab(ctx context.Context, s *fleet.Snapshot) {
	d := &w.op.Drain
	if w.f.GitLab == nil || w.op.Old.SystemID == "" {
		s.NoGitLab = s.NoGitLab || w.op.Old.SystemID == ""
		return
	}
	after := d.ExitSeenAt
	if noGuest(s.Provider) {
		after = w.now() // what it shows executing now, the end of the guest has cut
	}
	if after.IsZero() {
		w.lookForLinks(ctx, s)
		return
	}
	w.gitlabSaid(s, w.f.GitLab.Read(ctx, w.op.OldSubject(), after))
}

// noGuest says whether the provider lists no guest that runs.
func noGuest(p *fleet.ProviderReading) bool {
	return p != nil && (p.Presence == fleet.PresenceAbsent || p.Presence == fleet.PresenceOff)
}

func first(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// since keeps the first moment at which something held without a break.
func since(before, now time.Time, holds bool) time.Time {
	if !holds {
		return time.Time{}
	}
	return first(before, now)
}
