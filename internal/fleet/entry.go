package fleet

import (
	"fmt"
	"time"
)

// OwnEntry is GitLab's id of the runner entry that a host serves: the id of its
// one [[runners]] section, as `gitlab-runner register` writes it. 0 without an
// error: no runner has joined from there. Errors: CodeInvalid, with what to do.
func OwnEntry(vm Ref, f *HostFacts) (int64, error) {
	runs := f.Reading.Unit.MainPID != 0 || len(f.RunnerPIDs) > 0
	switch n := len(f.Entries); {
	case n == 0 && !runs:
		return 0, nil
	case n != 1:
		return 0, Errorf(CodeInvalid, "%s: config.toml has %d [[runners]] sections; with registration: individual a VM has one runner entry of its own", vm, n).
			WithHint("leave the one that its create script registers, or set registration: fleet where the VMs share one entry")
	case f.Entries[0].ID == 0:
		return 0, Errorf(CodeInvalid, "%s: the [[runners]] section of config.toml has no id, so GitLab cannot be asked about its runner entry", vm).
			WithHint("register with `gitlab-runner register`, which writes it, or add `id = N`, the number on the entry's page in GitLab")
	}
	return f.Entries[0].ID, nil
}

// EntryClaim is a runner entry that may be removed, as it was known before its
// VM was deleted (design.md section 6).
type EntryClaim struct {
	Entry       int64
	Description string
	SystemID    string
	Asked       time.Time // our clock, when the operation was asked for
	Gone        time.Time // our clock, when the VM's absence was confirmed
}

// EntryState is what GitLab shows of an entry. Times are GitLab's.
type EntryState struct {
	Description string
	CreatedAt   time.Time
	At          time.Time // when it answered
	Managers    []Manager
}

// contactSlack is how long after its VM's absence was confirmed a manager's last
// contact may seem to be: the clocks are compared to a second or two.
const contactSlack = 30 * time.Second

// Doubt says why the entry must be left as it is; "" = it is the claim's, and
// nobody else's. answered is when the state's answer came, by our clock.
func (c EntryClaim) Doubt(s EntryState, answered time.Time) string {
	if s.CreatedAt.IsZero() || s.At.IsZero() {
		return "GitLab does not say when it was created"
	}
	offset := s.At.Sub(answered)
	switch {
	case c.Entry == 0 || c.SystemID == "":
		return "what it was before its VM was deleted is not known"
	case s.Description != c.Description:
		return fmt.Sprintf("its description is %q, and was %q before its VM was deleted", s.Description, c.Description)
	case !s.CreatedAt.Before(c.Asked.Add(offset)):
		return "it was created after the operation was asked for, at " + s.CreatedAt.UTC().Format(time.RFC3339)
	case len(s.Managers) != 1:
		return fmt.Sprintf("it has %d managers, not one", len(s.Managers))
	case s.Managers[0].SystemID != c.SystemID:
		return fmt.Sprintf("its manager is %s, and was %s before its VM was deleted", s.Managers[0].SystemID, c.SystemID)
	}
	return s.Managers[0].Outlives(c.Gone, offset)
}

// Outlives says that a manager has contacted GitLab since its VM is gone: a copy
// of that, or what somebody made in its place, lives under it. "" = it has not.
// offset is GitLab's clock minus ours.
func (m Manager) Outlives(gone time.Time, offset time.Duration) string {
	if !m.ContactedAt.After(gone.Add(offset + contactSlack)) {
		return ""
	}
	return "its manager has contacted GitLab since its VM is gone, at " + m.ContactedAt.UTC().Format(time.RFC3339)
}
