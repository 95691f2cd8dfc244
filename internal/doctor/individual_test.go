package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// own is a GitLab in which each VM has a runner entry of its own.
type own struct {
	engine.Entries
	w *ward
}

type ownEntry struct {
	engine.GitLab
	w  *ward
	id int64
}

func (o own) Entry(id int64) engine.GitLab { return ownEntry{w: o.w, id: id} }

func (e ownEntry) Runner(context.Context) (engine.RunnerInfo, error) {
	return engine.RunnerInfo{ID: e.id, Paused: e.w.paused && e.id == 11}, e.w.gitlabErr
}

func (e ownEntry) Managers(context.Context) ([]fleet.Manager, time.Time, error) {
	return e.w.managers[e.id-11 : e.id-10], noon, nil
}

// examineOwn examines a fleet with registration individual.
func examineOwn(t *testing.T, change func(*ward, *Patient)) Report {
	t.Helper()
	w := newWard()
	w.spec.Registration, w.spec.RunnerID, w.spec.HasRunnerToken = fleet.RegistrationIndividual, 0, false
	w.facts["a"].Entries[0].ID, w.facts["b"].Entries[0].ID = 11, 12
	p := Patient{Fleet: &engine.Fleet{Spec: w.spec, Hosts: w, Machines: w, GitLab: w, Entries: own{w: w}}}
	p.Token = func(context.Context) (TokenInfo, error) { return w.token, nil }
	change(w, &p)
	report, err := New(Options{
		Fleets: map[string]Patient{"gcp": p}, Clock: still{}, Spec: func(string) (fleet.Spec, error) { return w.spec, nil },
	}).Examine(t.Context(), "gcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAHealthyFleetOfIndividualEntriesHasNoFinding(t *testing.T) {
	if r := examineOwn(t, func(*ward, *Patient) {}); len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
}

func TestWhatIsWrongWithIndividualEntriesIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ward, *Patient)
		code   Code
		vm     string
		what   string
	}{
		"no id":               {func(w *ward, _ *Patient) { w.facts["a"].Entries[0].ID = 0 }, CodeEntryUnknown, "a", "has no id"},
		"two VMs with one":    {func(w *ward, _ *Patient) { w.facts["b"].Entries[0].ID = 11; w.facts["b"].SystemIDs = []string{"s_a2"} }, CodeEntryShared, "a", "runner entry 11 is in the config.toml of a, b"},
		"no write token":      {func(_ *ward, p *Patient) { p.EntriesRemain = true }, CodeEntriesRemain, "", "no gitlab.write_token"},
		"paused":              {func(w *ward, _ *Patient) { w.paused = true }, CodeRunnerPaused, "a", "runner 11 is paused"},
		"GitLab says nothing": {func(w *ward, _ *Patient) { w.gitlabErr = fleet.Errorf(fleet.CodeNotFound, "no entry") }, CodeGitLabUnread, "a", "no entry"},
		"no manager of its":   {func(w *ward, _ *Patient) { w.managers[0].SystemID = "s_other" }, CodeVMWithoutManager, "a", "under its runner entry"},
	} {
		found := false
		for _, f := range examineOwn(t, c.change).Findings {
			found = found || f.Code == c.code && f.VM == c.vm && strings.Contains(f.What, c.what) && f.Mend != "" && f.Would != ""
		}
		if !found {
			t.Errorf("%s: not found: %+v", name, examineOwn(t, c.change).Findings)
		}
	}
}

// ofEntries says whether a code is only found in such fleets, by the test above.
func ofEntries(code Code) bool {
	return slices.ContainsFunc(entryKinds, func(k Kind) bool { return k.Code == code })
}
