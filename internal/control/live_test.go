package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// midDrain asks for a recreate and lets it be in mid-drain, stopped now.
func (w *world) midDrain() string {
	id := w.asked("runner-01")
	w.set(id, func(op *fleet.Operation) {
		op.Phase, op.Order.Verb = fleet.PhaseDraining, fleet.OrderStop
		op.Drain.StoppedAt, op.Drain.Deadline, op.Drain.HardCap = w.now, w.now.Add(10*time.Minute), w.now.Add(4*time.Hour)
	})
	w.woken = nil
	return id
}

var ada = fleet.Actor{Name: "ada", From: "192.0.2.7", Why: "a release"}

func byTen() control.Change {
	return control.Change{Extend: &fleet.Extension{By: 10 * time.Minute}, By: ada}
}

// Every change is an event: who, from where, why (design.md section 8); and the
// engine is woken at once.
func TestEveryChangeIsInTheJournalWithWhoWhereAndWhyAndWakesTheEngine(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(*world, string) (*fleet.Operation, error)
		says string
	}{
		"extend": {
			func(w *world, id string) (*fleet.Operation, error) { return w.Change(t.Context(), id, byTen()) },
			"an extension was asked for (the cap is 20m0s, until 2026-11-30T12:20:00Z, before: the cap is 10m0s, until 2026-11-30T12:10:00Z)",
		},
		"set-policy": {func(w *world, id string) (*fleet.Operation, error) {
			return w.Change(t.Context(), id, control.Change{Policy: &control.PolicyPatch{OnOverrun: new(fleet.OverrunWait)}, By: ada})
		}, "another policy was asked for (on_overrun from proceed to wait; the cap is 10m0s, until 2026-11-30T12:10:00Z; hard_cap 4h0m0s, until 2026-11-30T16:00:00Z)"},
		"skip-drain": {func(w *world, id string) (*fleet.Operation, error) {
			return w.Change(t.Context(), id, control.Change{Skip: true, By: ada})
		}, "skipping the drain was asked for"},
		"cancel": {func(w *world, id string) (*fleet.Operation, error) { return w.Cancel(t.Context(), id, ada) }, "cancel was asked for"},
	} {
		w := newWorld(t)
		id := w.midDrain()
		if _, err := c.ask(w, id); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		facts, err := w.store.Facts(t.Context(), 0, id, 10)
		want := c.says + " by ada from 192.0.2.7: a release"
		if err != nil || len(facts) < 2 || facts[1].Kind != fleet.FactAsked || facts[1].Text != want {
			t.Errorf("%s: %+v, %v, want %q", name, facts, err, want)
		}
		if len(w.woken) != 1 || w.woken[0] != id {
			t.Errorf("%s woke %v", name, w.woken)
		}
	}
}

// design.md section 5: the waiver says which row, who, when.
func TestASkippedDrainIsStoredAsAWaiver(t *testing.T) {
	w := newWorld(t)
	id := w.midDrain()
	for range 2 { // twice is once
		if _, err := w.Change(t.Context(), id, control.Change{Skip: true, By: ada}); err != nil {
			t.Fatal(err)
		}
	}
	op, err := w.store.Operation(t.Context(), id)
	if err != nil || op.Drain.Verdict != fleet.VerdictSkipped || *op.Drain.Waiver != (fleet.Waiver{Verdict: fleet.VerdictSkipped, By: "ada", At: w.now}) {
		t.Errorf("%+v, %v", op.Drain.Waiver, err)
	}
	facts, _ := w.store.Facts(t.Context(), 0, id, 10)
	if len(facts) != 3 || facts[2].Kind != fleet.FactWarning || !strings.Contains(facts[2].Text, "jobs on gcp-shared/runner-01 will be cut") {
		t.Errorf("%+v", facts)
	}
}

// The answer to an extension may be lost: asked again under its key it is not
// done twice.
func TestAChangeIsDoneOnceUnderOneKey(t *testing.T) {
	w := newWorld(t)
	id := w.midDrain()
	ch := byTen()
	ch.Key, ch.KeyScope = "k", "ada"
	for range 3 {
		if op, err := w.Change(t.Context(), id, ch); err != nil || op.Request.Policy.Cap != 20*time.Minute {
			t.Fatalf("%+v, %v", op, err)
		}
	}
	other := ch
	other.Extend = &fleet.Extension{By: time.Hour}
	if _, err := w.Change(t.Context(), id, other); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "Idempotency-Key") {
		t.Errorf("another change under the key: %v", err)
	}
	ch.KeyScope = "bob"
	if op, err := w.Change(t.Context(), id, ch); err != nil || op.Request.Policy.Cap != 30*time.Minute {
		t.Errorf("somebody else's key of that name: %v", err)
	}
	w.set(id, func(op *fleet.Operation) { op.Phase = fleet.PhaseSucceeded })
	if _, err := w.Change(t.Context(), id, ch); err != nil {
		t.Errorf("a repeat when it has ended: %v", err)
	}
}

// racing is a store whose first write is overtaken by somebody else's.
type racing struct {
	control.Store
	overtake func()
}

func (r *racing) UpdateOperation(ctx context.Context, op *fleet.Operation, facts []fleet.Fact, vm *fleet.VM, chores []fleet.Chore) error {
	if overtake := r.overtake; overtake != nil {
		r.overtake = nil
		overtake()
	}
	return r.Store.UpdateOperation(ctx, op, facts, vm, chores)
}

// The engine may commit between our read and our write: then the change is judged
// by what holds now. It is never stored over a verdict or a delete intent.
func TestAChangeThatIsOvertakenByTheEngineIsJudgedAnew(t *testing.T) {
	for name, c := range map[string]struct {
		moved func(*fleet.Operation)
		code  fleet.Code
	}{
		"a reading":     {func(op *fleet.Operation) { op.Drain.LinksAt = op.Drain.StoppedAt }, ""},
		"the verdict":   {func(op *fleet.Operation) { op.Drain.Verdict, op.Drain.Waiver = fleet.VerdictOverrun, &fleet.Waiver{} }, fleet.CodeConflict},
		"the intent":    {func(op *fleet.Operation) { op.Phase, op.Delete.IntentAt = fleet.PhaseDeleting, op.Drain.StoppedAt }, fleet.CodeConflict},
		"another's":     {func(op *fleet.Operation) { _ = op.Extend(fleet.Extension{By: time.Hour}, op.Drain.StoppedAt) }, ""},
		"its very stop": {func(op *fleet.Operation) { op.Drain.StoppedAt = op.Drain.StoppedAt.Add(time.Second) }, ""},
	} {
		w := newWorld(t)
		id := w.midDrain()
		w.Store = &racing{Store: w.store, overtake: func() { w.set(id, c.moved) }}
		before, _ := w.store.Operation(t.Context(), id)
		c.moved(before)
		op, err := w.Change(t.Context(), id, byTen())
		if fleet.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !op.Drain.Deadline.Equal(before.Drain.Deadline.Add(10*time.Minute)) {
			t.Errorf("%s: the cap passes at %s, before the extension at %s", name, op.Drain.Deadline, before.Drain.Deadline)
		}
	}
}

func TestAChangeThatSaysNothingOrTooMuchIsRefused(t *testing.T) {
	w := newWorld(t)
	id := w.midDrain()
	for name, ch := range map[string]control.Change{
		"nothing":       {},
		"two":           {Extend: &fleet.Extension{By: time.Minute}, Skip: true},
		"no extension":  {Extend: &fleet.Extension{}},
		"two of it":     {Extend: &fleet.Extension{By: time.Minute, Cap: time.Hour}},
		"backwards":     {Extend: &fleet.Extension{By: -time.Minute}},
		"no policy":     {Policy: &control.PolicyPatch{}},
		"a wrong word":  {Policy: &control.PolicyPatch{OnOverrun: new(fleet.Overrun("maybe"))}},
		"hard under it": {Policy: &control.PolicyPatch{OnOverrun: new(fleet.OverrunWait), HardCap: new(time.Second)}},
	} {
		if _, err := w.Change(t.Context(), id, ch); fleet.CodeOf(err) != fleet.CodeInvalid || fleet.HintOf(err) == "" {
			t.Errorf("%s: %v, hint %q", name, err, fleet.HintOf(err))
		}
	}
}

// Who changed it relies on it: a newer webhook must not cancel it under them.
func TestWhatAPersonChangedInTheQueueDoesNotGiveWayToANewerEvent(t *testing.T) {
	w := newWorld(t)
	first, err := w.Ask(t.Context(), byWebhook("runner-1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Change(t.Context(), first[0].Operation.ID, byTen()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Ask(t.Context(), byWebhook("runner-2")); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("%v", err)
	}
}

// "A repeat with the same key changes
// nothing more", also where the first had nothing to change.
func TestARepeatUnderItsKeyChangesNothingWhereTheFirstHadNothingToChange(t *testing.T) {
	w := newWorld(t)
	id := w.midDrain()
	ch := control.Change{Policy: &control.PolicyPatch{Cap: new(10 * time.Minute)}, By: ada, Key: "k", KeyScope: "ci"}
	if _, err := w.Change(t.Context(), id, ch); err != nil { // the cap is 10m already
		t.Fatal(err)
	}
	if _, err := w.Change(t.Context(), id, control.Change{Extend: &fleet.Extension{Cap: 2 * time.Hour}, By: ada}); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(11 * time.Minute) // a job runs on inside the extended cap
	op, err := w.Change(t.Context(), id, ch)
	if err != nil || op.Request.Policy.Cap != 2*time.Hour {
		t.Errorf("a repeat took the extension back: cap %s until %s, now %s, %v", op.Request.Policy.Cap, op.Drain.Deadline, w.now, err)
	}
}
