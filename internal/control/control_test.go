package control_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

var _ control.Store = (*store.Store)(nil)

func recreate(vms ...string) control.Intent {
	return control.Intent{Fleet: "gcp-shared", VMs: vms, Kind: fleet.KindRecreate, By: fleet.Actor{Name: "tester"}}
}

func TestAnIntentBecomesOneOperationForEachVM(t *testing.T) {
	w := newWorld(t)
	answers, err := w.Ask(t.Context(), recreate("runner-01", "runner-02"))
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) != 2 || answers[0].Attached || answers[0].Operation.VM != "runner-01" {
		t.Fatalf("answers: %+v", answers)
	}
	if len(w.woken) != 2 {
		t.Errorf("woken: %v", w.woken)
	}
}

func TestAskingAgainForTheSameAttaches(t *testing.T) {
	w := newWorld(t)
	first, err := w.Ask(t.Context(), recreate("runner-01"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.Ask(t.Context(), recreate("runner-01"))
	if err != nil {
		t.Fatal(err)
	}
	if !again[0].Attached || again[0].Operation.ID != first[0].Operation.ID {
		t.Errorf("%+v", again[0])
	}
}

func TestAskingForSomethingElseIsRefusedWithTheID(t *testing.T) {
	w := newWorld(t)
	first, err := w.Ask(t.Context(), recreate("runner-01"))
	if err != nil {
		t.Fatal(err)
	}
	other := recreate("runner-02", "runner-01")
	other.Kind = fleet.KindDelete
	_, err = w.Ask(t.Context(), other)
	if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), first[0].Operation.ID) {
		t.Fatalf("error: %v", err)
	}
	ops, err := w.store.Operations(t.Context(), control.Filter{})
	if err != nil || len(ops) != 1 {
		t.Errorf("%d operations stored, want all or none: %v", len(ops), err)
	}
}

func TestANameThatIsNotKnownSuggestsTheNearOne(t *testing.T) {
	w := newWorld(t)
	for name, in := range map[string]control.Intent{
		`did you mean "runner-01"?`:  recreate("runner-1"),
		`did you mean "gcp-shared"?`: {Fleet: "gpc-shared", VMs: []string{"runner-01"}, Kind: fleet.KindDrain},
	} {
		_, err := w.Ask(t.Context(), in)
		if fleet.CodeOf(err) != fleet.CodeNotFound || !strings.Contains(err.Error(), name) {
			t.Errorf("error: %v, want %s", err, name)
		}
	}
}

func TestAnIntentThatCannotMeanWhatItSaysIsRefused(t *testing.T) {
	w := newWorld(t)
	negative := -time.Minute
	for want, change := range map[string]func(*control.Intent){
		"named twice":            func(in *control.Intent) { in.VMs = []string{"runner-01", "runner-01"} },
		"no VM was named":        func(in *control.Intent) { in.VMs = nil },
		"no_drain goes with":     func(in *control.Intent) { in.NoDrain = true },
		"recreate goes with":     func(in *control.Intent) { in.Replace = true },
		"has no use for":         func(in *control.Intent) { in.Kind, in.Image = fleet.KindDrain, "x" },
		"is not positive":        func(in *control.Intent) { in.Policy.Cap = &negative },
		"parallel -1 is":         func(in *control.Intent) { in.Parallel = -1 },
		`kind "evict" are not`:   func(in *control.Intent) { in.Kind = "evict" },
		"neither a GitLab token": func(in *control.Intent) { in.Fleet, in.VMs = "blind", []string{"x"} },
	} {
		in := recreate("runner-01")
		change(&in)
		_, err := w.Ask(t.Context(), in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error: %v, want %q", err, want)
		}
	}
}

func TestACancelIsRefusedOnceTheDeleteIsCommitted(t *testing.T) {
	w := newWorld(t)
	id := w.asked("runner-01")
	w.set(id, func(op *fleet.Operation) { op.Phase, op.Delete.IntentAt = fleet.PhaseDeleting, w.now })
	if _, err := w.Cancel(t.Context(), id, fleet.Actor{Name: "x"}); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "no way back") {
		t.Errorf("error: %v", err)
	}
}

func TestACancelIsRefusedWhileTheProviderCreates(t *testing.T) {
	w := newWorld(t)
	id := w.asked("runner-01")
	w.set(id, func(op *fleet.Operation) {
		op.Kind, op.Phase, op.Create.Token = fleet.KindCreate, fleet.PhaseCreating, "t"
	})
	if _, err := w.Cancel(t.Context(), id, fleet.Actor{Name: "x"}); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "creating") {
		t.Errorf("error: %v", err)
	}
}

func TestAResumeWithAnImageGoesOnFromHeld(t *testing.T) {
	w := newWorld(t)
	id := w.asked("runner-01")
	if _, err := w.Resume(t.Context(), id, "image-2", fleet.Actor{}); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("an image was changed in mid-drain: %v", err)
	}
	w.set(id, func(op *fleet.Operation) { op.Phase, op.Held = fleet.PhaseCreating, true })
	op, err := w.Resume(t.Context(), id, "image-2", fleet.Actor{Name: "x"})
	if err != nil || op.Held || op.Request.Image != "image-2" {
		t.Errorf("%+v, %v", op, err)
	}
}

// design.md section 4.1: a later delete or recreate supersedes a restore.
func TestADeleteSupersedesARestore(t *testing.T) {
	w := newWorld(t)
	id := w.asked("runner-01")
	w.set(id, func(op *fleet.Operation) {
		op.Phase, op.Order.Verb, op.Restore.Event = fleet.PhaseRestoring, fleet.OrderStop, fleet.EventFail
	})
	drain := recreate("runner-01")
	drain.Kind = fleet.KindDrain
	if _, err := w.Ask(t.Context(), drain); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("a drain superseded the restore: %v", err)
	}
	answers, err := w.Ask(t.Context(), recreate("runner-01"))
	if err != nil || answers[0].Attached {
		t.Fatalf("%+v, %v", answers, err)
	}
	old, err := w.store.Operation(t.Context(), id)
	if err != nil || old.Phase != fleet.PhaseFailed || old.ErrMessage == "" {
		t.Errorf("%+v, %v", old, err)
	}
}

func TestAnUndrainTakesOverFromADrainThatIsOnItsWay(t *testing.T) {
	w := newWorld(t)
	id := w.asked("runner-01")
	w.set(id, func(op *fleet.Operation) {
		op.Phase, op.Order.Verb, op.Old.Instance, op.Drain.StoppedAt = fleet.PhaseDraining, fleet.OrderStop, "i-1", w.now
	})
	undrain := recreate("runner-01")
	undrain.Kind = fleet.KindUndrain
	answers, err := w.Ask(t.Context(), undrain)
	if err != nil || answers[0].Attached || answers[0].Operation.Old.Instance != "i-1" {
		t.Fatalf("%+v, %v", answers, err)
	}
	if old, err := w.store.Operation(t.Context(), id); err != nil || old.Phase != fleet.PhaseCanceled {
		t.Errorf("%+v, %v", old, err)
	}
	again, err := w.Ask(t.Context(), undrain)
	if err != nil || !again[0].Attached {
		t.Errorf("a second undrain: %+v, %v", again, err)
	}
}

func TestNothingTakesOverOnceTheDeleteIsCommitted(t *testing.T) {
	w := newWorld(t)
	id := w.asked("runner-01")
	w.set(id, func(op *fleet.Operation) { op.Phase, op.Delete.IntentAt = fleet.PhaseDeleting, w.now })
	undrain := recreate("runner-01")
	undrain.Kind = fleet.KindUndrain
	if _, err := w.Ask(t.Context(), undrain); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("error: %v", err)
	}
}

func TestAKeyIsNotReusedForAnotherRequest(t *testing.T) {
	w := newWorld(t)
	in := recreate("runner-01")
	in.Key = "k"
	first, err := w.Ask(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.Ask(t.Context(), in)
	if err != nil || again[0].Operation.ID != first[0].Operation.ID {
		t.Errorf("%+v, %v", again, err)
	}
	in.VMs = []string{"runner-02"}
	if _, err := w.Ask(t.Context(), in); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("error: %v", err)
	}
}
