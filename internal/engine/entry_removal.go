package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// removeEntry removes the deleted VM's own runner entry: the intent first, in a
// commit of its own; at a later look the removal, with everything read anew.
// From the intent on an entry that GitLab does not show is removed, whether or
// not an answer has come.
func (r *errand) removeEntry(ctx context.Context, s *deregisterState) error {
	if r.f.Entries == nil {
		return r.end("skipped: no GitLab token is configured any more")
	}
	if s.Old.Entry == 0 {
		return r.end("skipped: the runner entry of instance %s is not known", s.Old.Instance)
	}
	if !s.Removed.IsZero() {
		return r.proveEntryGone(ctx, s)
	}
	op, fresh, done, err := r.allowed(ctx, s)
	if done || err != nil {
		return err
	}
	if s.Intent.IsZero() {
		s.Intent = r.now()
		r.fact(fleet.FactNote, "the removal of runner entry %d (%q) is committed", s.Old.Entry, s.Old.EntryName)
		return r.keep(s, r.now())
	}
	bounded, cancel := timeout(ctx, fresh)
	defer cancel()
	doubt, err := r.f.Entries.RemoveEntry(bounded, fleet.EntryClaim{
		Entry: s.Old.Entry, Description: s.Old.EntryName, SystemID: s.Old.SystemID, Asked: s.asked(op), Gone: r.c.CreatedAt,
	})
	return r.entryAnswered(ctx, s, doubt, err)
}

// asked is when the entry must have been there: at the operation's beginning, or,
// of a stray that this operation itself has made, before its delete.
func (s *deregisterState) asked(op *fleet.Operation) time.Time {
	if !s.Asked.IsZero() {
		return s.Asked
	}
	return op.CreatedAt
}

// entryAnswered goes on by what became of the removal.
func (r *errand) entryAnswered(ctx context.Context, s *deregisterState, doubt string, err error) error {
	switch code := fleet.CodeOf(err); {
	case doubt != "":
		r.fact(fleet.FactWarning, "runner entry %d of %s is left as it is: %s; remove it in GitLab if it is nobody's", s.Old.Entry, r.c.Ref(), doubt)
		return r.end("runner entry %d stays: %s", s.Old.Entry, doubt)
	case err == nil, code == fleet.CodeNotFound: // asked, or asked before and gone
		s.Removed = r.now()
		return r.proveEntryGone(ctx, s)
	case code == fleet.CodeForbidden:
		r.fact(fleet.FactWarning, "runner entry %d of %s stays: %s", s.Old.Entry, r.c.Ref(), text(err))
		return r.end("runner entry %d stays: it may not be removed", s.Old.Entry)
	case code == fleet.CodeConflict:
		if s.Changed++; s.Changed >= entryChanges {
			return r.entryAnswered(ctx, s, "it keeps being changed: "+text(err), nil)
		}
		return r.keep(s, r.now().Add(15*time.Second))
	default:
		return err
	}
}

// entryChanges is how often an entry may be found changed between look and call.
const entryChanges = 10

// proveEntryGone ends when GitLab shows the entry no more, and the new VM's own
// lives.
func (r *errand) proveEntryGone(ctx context.Context, s *deregisterState) error {
	_, err := r.f.Entries.Entry(s.Old.Entry).Runner(ctx)
	s.Proofs++
	switch {
	case fleet.CodeOf(err) == fleet.CodeNotFound:
		return r.proveNewEntry(ctx, s)
	case s.Proofs >= tokenProofs && err != nil:
		return r.end("runner entry %d removed; whether it is gone is unknown: %s", s.Old.Entry, text(err))
	case s.Proofs >= tokenProofs:
		r.fact(fleet.FactWarning, "GitLab accepted the removal of runner entry %d of %s, and shows it still", s.Old.Entry, r.c.Ref())
		return r.end("runner entry %d is still shown after its removal", s.Old.Entry)
	}
	return r.keep(s, r.now().Add(15*time.Second))
}

// proveNewEntry is what the proof of the token is where one is shared.
func (r *errand) proveNewEntry(ctx context.Context, s *deregisterState) error {
	op, err := r.Store.Operation(ctx, r.c.Operation)
	if err != nil {
		return err
	}
	is := op.Create.New
	if is.Entry == 0 {
		return r.end("runner entry %d removed", s.Old.Entry)
	}
	_, err = r.f.Entries.Entry(is.Entry).Runner(ctx)
	switch {
	case err == nil:
		return r.end("runner entry %d removed; the new VM's entry %d lives", s.Old.Entry, is.Entry)
	case fleet.CodeOf(err) == fleet.CodeNotFound:
		r.fact(fleet.FactWarning, "THE NEW VM'S RUNNER ENTRY %d IS GONE: GitLab does not show it after entry %d was removed; %s can take no jobs", is.Entry, s.Old.Entry, r.c.Ref())
		return r.end("runner entry %d removed; the new VM's entry %d is not there", s.Old.Entry, is.Entry)
	default:
		return r.end("runner entry %d removed; whether the new VM's entry %d lives is unknown: %s", s.Old.Entry, is.Entry, text(err))
	}
}
