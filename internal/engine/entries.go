package engine

import (
	"context"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Entries are the runner entries of a fleet in which every VM has its own
// (registration individual).
type Entries interface {
	// Entry is GitLab seen through one of them. Through entry 0, which nobody
	// knows, every reading is unknown and every other call errs.
	Entry(id int64) GitLab
	// RemoveEntry looks at the claim's entry and, if nothing about it is in doubt,
	// removes it, once, within this call. doubt says why it was left; "" and no
	// error = GitLab said that it is removed. Nothing is sent once ctx has ended.
	//
	// Errors: CodeNotFound (GitLab shows no such entry), CodeConflict (it was
	// changed after the look, and left), CodeForbidden (nobody may, or no token
	// for it is configured: it was left). After any other it is not known whether
	// it is removed: look again.
	RemoveEntry(ctx context.Context, claim fleet.EntryClaim) (doubt string, err error)
}

// through is GitLab seen through the runner entry of an incarnation: the fleet's
// one, or its own.
func (f *Fleet) through(is fleet.Incarnation) GitLab {
	if f.Entries == nil {
		return f.GitLab
	}
	return f.Entries.Entry(is.Entry)
}

// entryOf is GitLab's id of the runner entry of an incarnation.
func (f *Fleet) entryOf(is fleet.Incarnation) int64 {
	if f.Individual() {
		return is.Entry
	}
	return f.RunnerID
}

// known completes an incarnation by what the host's config.toml says of its own
// runner entry and what GitLab calls that. Nothing is asked in fleets that share
// one. Errors: CodeInvalid (the host's fault), and GitLab's.
func (f *Fleet) known(ctx context.Context, vm fleet.Ref, is *fleet.Incarnation, facts *fleet.HostFacts) error {
	if f.Entries == nil {
		return nil
	}
	id, err := fleet.OwnEntry(vm, facts)
	if err != nil || id == 0 || id == is.Entry {
		return err
	}
	info, err := f.Entries.Entry(id).Runner(ctx)
	if err != nil {
		return err
	}
	is.Entry, is.EntryName = id, info.Description
	return nil
}

// askEntry reads the runner entry on a host that was not inspected before: of a
// stray, or of a VM that preflight could not reach. What cannot be read stays
// unknown, and GitLab's word with it.
func (w *work) askEntry(ctx context.Context) {
	if w.f.Entries == nil || w.op.Old.Entry != 0 || w.op.Old.SystemID == "" {
		return
	}
	facts, err := w.f.inspect(ctx, w.oldTarget())
	if err == nil && w.op.OldSubject().Check(facts.Reading.Subject) == nil {
		err = w.f.known(ctx, w.op.Ref(), &w.op.Old, facts)
	}
	if err != nil {
		w.Log.DebugContext(ctx, "a VM's runner entry could not be read", "op", w.op.ID, "fleet", w.op.Fleet, "vm", w.op.VM, "error", err)
	}
}

// newEntry reads the new VM's own runner entry on its host, once. A reason = it
// is not known yet.
func (w *work) newEntry(ctx context.Context) string {
	is := &w.op.Create.New
	if w.f.Entries == nil || is.Entry != 0 {
		return ""
	}
	facts, err := w.f.inspect(ctx, w.newTarget())
	if err == nil {
		err = w.f.known(ctx, w.op.Ref(), is, facts)
	}
	switch {
	case err != nil:
		return "the new VM's runner entry is not known: " + text(err)
	case is.Entry == 0:
		return "the new VM's config.toml has no runner entry yet"
	}
	return ""
}
