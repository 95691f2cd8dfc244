package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// cost is what an operation asks of the journal's disk and of GitLab. A reading
// is three requests; it shares the list of managers that was read just before.
type cost struct{ commits, requests int }

func costOf(w *enginetest.World) cost {
	var c cost
	before := ""
	for _, point := range w.Points.Passed {
		switch {
		case point == "commit:before":
			c.commits++
		case point == "managers:before":
			c.requests++
		case point == "read:before" && before == "managers:before":
			c.requests += 2
		case point == "read:before":
			c.requests += 3
		}
		before = point
	}
	return c
}

func countReadings(w *enginetest.World) (n int) {
	for _, fact := range w.Store.Facts {
		if fact.Kind == fleet.FactReading {
			n++
		}
	}
	return n
}

// An explanation rides on what is committed and asked for anyway: telling the
// story of a drain costs neither a sync of the disk nor a request to GitLab
// (design.md section 12).
func TestTellingTheStoryCostsNoCommitAndNoRequest(t *testing.T) {
	for name, test := range map[string]struct {
		scene func(*enginetest.World)
		kind  fleet.Kind
		want  cost
	}{
		"idle":       {func(*enginetest.World) {}, fleet.KindRecreate, cost{38, 14}},
		"a job":      {func(w *enginetest.World) { w.Job("a", 42, 5*time.Minute) }, fleet.KindRecreate, cost{43, 18}},
		"overrun":    {func(w *enginetest.World) { w.Job("a", 42, time.Hour) }, fleet.KindRecreate, cost{51, 25}},
		"abort":      {func(w *enginetest.World) { w.Job("a", 42, time.Hour); w.Spec.Drain.OnOverrun = fleet.OverrunAbort }, fleet.KindDrain, cost{26, 19}},
		"wait":       {func(w *enginetest.World) { w.Job("a", 42, time.Hour); w.Spec.Drain.OnOverrun = fleet.OverrunWait }, fleet.KindDrain, cost{72, 92}},
		"no GitLab":  {func(w *enginetest.World) { w.NoGitLab = true; w.Job("a", 42, 5*time.Minute) }, fleet.KindDrain, cost{8, 0}},
		"unreached":  {func(w *enginetest.World) { w.VM("a").Cutoff = true }, fleet.KindDrain, cost{4, 0}},
		"off":        {func(w *enginetest.World) { w.VM("a").Off = true }, fleet.KindDelete, cost{8, 0}},
		"orphan":     {func(w *enginetest.World) { w.Orphan("a", fleet.Job{ID: 9, StartedAt: w.Now()}) }, fleet.KindRecreate, cost{519, 163}},
		"leftovers":  {func(w *enginetest.World) { w.VM("a").Leftovers = []fleet.Container{{Name: "left"}} }, fleet.KindRecreate, cost{36, 59}},
		"GitLab out": {func(w *enginetest.World) { w.Fences["stop"] = func() { w.GitLabDown = true } }, fleet.KindDrain, cost{49, 404}},
	} {
		w := enginetest.New("a", "b")
		test.scene(w)
		w.Ask(test.kind, "a")
		w.Run(3 * time.Hour)
		got := costOf(w)
		if got.commits > test.want.commits || got.requests > test.want.requests {
			t.Errorf("%s: costs %+v, and cost %+v without anything being told", name, got, test.want)
		}
		if countReadings(w) == 0 {
			t.Errorf("%s: no reading is told\n%s", name, w.Story())
		}
	}
}

// A host that comes and goes for hours fills no disk.
func TestAHostThatFlapsIsToldOfABoundedNumberOfTimes(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 42, 10*time.Hour)
	w.Spec.Drain.OnOverrun, w.Spec.Drain.HardCap = fleet.OverrunWait, 9*time.Hour
	id := w.Ask(fleet.KindDrain, "a")
	for range 400 {
		w.Run(30 * time.Second)
		w.VM("a").Cutoff = !w.VM("a").Cutoff
	}
	if op := w.Op(id); op.Phase != fleet.PhaseDraining || len(op.Readings) != 3 {
		t.Fatalf("%s, with %d readings: it does not flap as it should", op.Phase, len(op.Readings))
	}
	if n := countReadings(w); n < 200 || n > 201 {
		t.Errorf("%d readings were told, want 200 and that there are more", n)
	}
}

// Two failures that differ in a port number are one: nothing is written anew.
func TestAnErrorWithAnotherPortNumberIsNoNews(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 42, time.Hour)
	id := w.Ask(fleet.KindDrain, "a")
	w.Run(30 * time.Second)
	for i := range 50 {
		w.Refuse["look"] = append(w.Refuse["look"], fleet.Errorf(fleet.CodeUnavailable, "read tcp 10.0.0.1:%d: connection reset", 40000+i))
	}
	before, facts := costOf(w).commits, len(w.Store.Facts)
	w.Run(3 * time.Minute)
	op := w.Op(id)
	if op.Ruling == nil || op.Ruling.Row != 2 || !strings.Contains(op.Waiting, "10.0.0.1:40000") {
		t.Fatalf("it waits for %q by %+v\n%s", op.Waiting, op.Ruling, w.Story())
	}
	if got := costOf(w).commits - before; got > 6 {
		t.Errorf("%d commits in 3 min out of reach\n%s", got, w.Story())
	}
	if got := len(w.Store.Facts) - facts; got > 5 {
		t.Errorf("%d events in 3 min out of reach\n%s", got, w.Story())
	}
}

// What an operation knows of its evidence is in the journal: wherever the
// controller dies, the row says what the events say, and nothing is told twice.
func TestTheStorySurvivesACrashAtAnyPoint(t *testing.T) {
	for die := 1; ; die++ {
		w := enginetest.New("a")
		w.Job("a", 42, 3*time.Minute)
		w.Points.Die = die
		id := w.Ask(fleet.KindRecreate, "a")
		w.Run(time.Hour)
		if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || len(op.Readings) != 3 || op.Ruling == nil || op.Ruling.Row != 10 && op.Ruling.Row != 1 {
			t.Fatalf("killed at point %d it is %s, with %d readings and %+v\n%s", die, op.Phase, len(op.Readings), op.Ruling, w.Story())
		}
		checkStory(t, w, id)
		if len(w.Points.Passed) < die {
			return
		}
	}
}

func checkStory(t *testing.T, w *enginetest.World, id string) {
	t.Helper()
	told := map[string]fleet.Fact{}
	for _, fact := range w.Store.Facts {
		if fact.Kind != fleet.FactReading || fact.Phase == "" { // a chore's is not the row's
			continue
		}
		source := string(fact.Data)
		if told[source].Text == fact.Text {
			t.Fatalf("%s is told twice in a row: %s\n%s", source, fact.Text, w.Story())
		}
		told[source] = fact
	}
	for _, r := range w.Op(id).Readings {
		fact := told[fmt.Sprintf(`{"source":%q}`, r.Source)]
		if fact.Text != r.Text || !fact.At.Equal(r.At) {
			t.Fatalf("the row says %+v, the events %q at %s\n%s", r, fact.Text, fact.At, w.Story())
		}
	}
}

// A host that is never reached: until when, what then, and which row.
func TestAHostThatWasNeverReachedIsExplained(t *testing.T) {
	for policy, want := range map[fleet.Unreachable]struct {
		then, text string
		ends       fleet.Phase
	}{
		fleet.UnreachableFail:    {"the operation fails, and nothing was touched", "the drain is not begun: the host could not be reached for 10m0s", fleet.PhaseFailed},
		fleet.UnreachableProceed: {"without an answer from the host (unreachable: proceed) the delete goes on", "going on without a proof: the host could not be reached for 10m0s", fleet.PhaseSucceeded},
	} {
		w := enginetest.New("a")
		w.Spec.Drain.Unreachable = policy
		w.VM("a").Cutoff = true
		began := w.Now()
		id := w.Ask(fleet.KindDelete, "a")
		w.Run(time.Minute)
		op := w.Op(id)
		if late := op.Until.Sub(began); late < 10*time.Minute || late > 10*time.Minute+time.Second || op.Then != want.then {
			t.Errorf("%s: until %s, then %q, want %q", policy, op.Until, op.Then, want.then)
		}
		w.Run(time.Hour)
		if op = w.Op(id); op.Phase != want.ends || op.Ruling == nil || op.Ruling.Row != 2 {
			t.Errorf("%s: it is %s by %+v\n%s", policy, op.Phase, op.Ruling, w.Story())
		}
		told := slices.IndexFunc(w.Store.Facts, func(f fleet.Fact) bool { return f.Text == want.text })
		if told < 0 || !strings.Contains(string(w.Store.Facts[told].Data), `"row":2,"rule":"the host cannot be reached`) {
			t.Errorf("%s: %q is not told with its row\n%s", policy, want.text, w.Story())
		}
	}
}
