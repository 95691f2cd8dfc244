package fleet

import (
	"strings"
	"testing"
	"time"
)

func TestAVMsEntryIsTheIDOfItsOneSection(t *testing.T) {
	vm := Ref{Fleet: "f", VM: "a"}
	running := HostReading{Unit: UnitState{MainPID: 7}}
	for name, c := range map[string]struct {
		facts HostFacts
		want  int64
		fault string
	}{
		"one section":                        {HostFacts{Reading: running, Entries: []RunnerEntry{{ID: 12}}}, 12, ""},
		"stopped, with its section":          {HostFacts{Entries: []RunnerEntry{{ID: 12}}}, 12, ""},
		"never joined":                       {HostFacts{}, 0, ""},
		"runs without a section":             {HostFacts{Reading: running}, 0, "has 0 [[runners]] sections"},
		"runs elsewhere without a section":   {HostFacts{RunnerPIDs: []int{9}}, 0, "has 0 [[runners]] sections"},
		"two sections":                       {HostFacts{Entries: []RunnerEntry{{ID: 12}, {ID: 13}}}, 0, "has 2 [[runners]] sections"},
		"a section that was written by hand": {HostFacts{Reading: running, Entries: []RunnerEntry{{Name: "x"}}}, 0, "has no id"},
	} {
		got, err := OwnEntry(vm, &c.facts)
		if got != c.want || (err == nil) != (c.fault == "") {
			t.Errorf("%s: %d, %v", name, got, err)
		}
		if err != nil && (CodeOf(err) != CodeInvalid || HintOf(err) == "" || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// design.md section 6: any doubt, and the entry is left.
func TestAnEntryIsRemovedOnlyWithoutAnyDoubt(t *testing.T) {
	ours := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	theirs := ours.Add(-40 * time.Minute) // GitLab's clock is behind
	claim := EntryClaim{Entry: 12, Description: "gcp/a", SystemID: "s_a", Asked: ours.Add(-10 * time.Minute), Gone: ours.Add(-3 * time.Minute)}
	right := func() EntryState {
		return EntryState{
			Description: "gcp/a", CreatedAt: theirs.Add(-time.Hour), At: theirs,
			Managers: []Manager{{SystemID: "s_a", ContactedAt: theirs.Add(-4 * time.Minute)}},
		}
	}
	if why := claim.Doubt(right(), ours); why != "" {
		t.Fatalf("in doubt: %s", why)
	}
	for name, c := range map[string]struct {
		bend func(*EntryClaim, *EntryState)
		why  string
	}{
		"another description":        {func(_ *EntryClaim, s *EntryState) { s.Description = "gcp/b" }, "description"},
		"a description never read":   {func(c *EntryClaim, _ *EntryState) { c.Description = "" }, "description"},
		"made by the new VM":         {func(_ *EntryClaim, s *EntryState) { s.CreatedAt = theirs.Add(-5 * time.Minute) }, "created after"},
		"made in the very moment":    {func(_ *EntryClaim, s *EntryState) { s.CreatedAt = theirs.Add(-10 * time.Minute) }, "created after"},
		"no creation time":           {func(_ *EntryClaim, s *EntryState) { s.CreatedAt = time.Time{} }, "does not say"},
		"no clock":                   {func(_ *EntryClaim, s *EntryState) { s.At = time.Time{} }, "does not say"},
		"no manager":                 {func(_ *EntryClaim, s *EntryState) { s.Managers = nil }, "0 managers"},
		"another manager beside its": {func(_ *EntryClaim, s *EntryState) { s.Managers = append(s.Managers, Manager{SystemID: "s_b"}) }, "2 managers"},
		"another manager instead":    {func(_ *EntryClaim, s *EntryState) { s.Managers[0].SystemID = "s_b" }, "its manager is s_b"},
		"somebody lives under it":    {func(_ *EntryClaim, s *EntryState) { s.Managers[0].ContactedAt = theirs.Add(-time.Minute) }, "contacted GitLab since"},
		"an unknown system_id":       {func(c *EntryClaim, _ *EntryState) { c.SystemID = "" }, "not known"},
		"an unknown entry":           {func(c *EntryClaim, _ *EntryState) { c.Entry = 0 }, "not known"},
	} {
		claim, state := claim, right()
		c.bend(&claim, &state)
		if why := claim.Doubt(state, ours); !strings.Contains(why, c.why) {
			t.Errorf("%s: %q", name, why)
		}
	}
}
