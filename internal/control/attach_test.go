package control_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// under is a recreate under a policy of its own.
func under(p control.PolicyPatch) control.Intent {
	in := recreate("runner-01")
	in.Policy = p
	return in
}

// Whoever asks for 30 minutes and an abort must not be told "attached" by an
// operation that ends the job after one second.
func TestAskingUnderAnotherPolicyDoesNotAttach(t *testing.T) {
	w := newWorld(t)
	first, err := w.Ask(t.Context(), under(control.PolicyPatch{Cap: new(time.Second), OnOverrun: new(fleet.OverrunProceed)}))
	if err != nil {
		t.Fatal(err)
	}
	id := first[0].Operation.ID
	for name, c := range map[string]struct {
		policy control.PolicyPatch
		says   string // "" = it attaches
	}{
		"none":          {},
		"the same":      {policy: control.PolicyPatch{Cap: new(time.Second)}},
		"another cap":   {control.PolicyPatch{Cap: new(30 * time.Minute)}, "its cap is 1s, not 30m0s"},
		"both":          {control.PolicyPatch{Cap: new(30 * time.Minute), OnOverrun: new(fleet.OverrunAbort)}, "its cap is 1s, not 30m0s, its on_overrun is proceed, not abort"},
		"another proof": {control.PolicyPatch{OnUnproven: new(fleet.UnprovenProceed)}, "its on_unproven is abort, not proceed"},
	} {
		for how, ask := range map[string]func() ([]control.Answer, error){
			"ask":  func() ([]control.Answer, error) { return w.Ask(t.Context(), under(c.policy)) },
			"plan": func() ([]control.Answer, error) { return w.Plan(t.Context(), under(c.policy)) },
		} {
			answers, err := ask()
			if c.says == "" {
				if err != nil || !answers[0].Attached || answers[0].Operation.ID != id {
					t.Errorf("%s %s: %+v, %v", how, name, answers, err)
				}
				continue
			}
			if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), id) {
				t.Errorf("%s %s: %v", how, name, err)
			}
			if hint := fleet.HintOf(err); !strings.Contains(hint, "without a policy") || !strings.Contains(hint, id) {
				t.Errorf("%s %s: the hint is %q", how, name, hint)
			}
		}
	}
}

// byWebhook is what a trigger asks for.
func byWebhook(image string) control.Intent {
	in := recreate("runner-01")
	in.Image, in.Newer = image, true
	in.By = fleet.Actor{Name: "trigger:built", From: control.FromWebhook, Why: "pipeline success on main"}
	return in
}

// A trigger without an image means the newest there is. An operation that may
// have looked that up before the pipeline ended deploys an older one.
func TestANewerEventAttachesOnlyToWhatHasNotLookedItsImageUp(t *testing.T) {
	for _, image := range []string{"", "runner:latest"} {
		for phase, attaches := range map[fleet.Phase]bool{
			fleet.PhaseQueued: true, fleet.PhasePreflight: false, fleet.PhaseDraining: false, fleet.PhaseDeleting: false,
			fleet.PhaseCreating: false, fleet.PhaseVerifying: false,
		} {
			w := newWorld(t)
			first, err := w.Ask(t.Context(), byWebhook(image))
			if err != nil {
				t.Fatal(err)
			}
			id := first[0].Operation.ID
			w.set(id, func(op *fleet.Operation) { op.Phase = phase })
			answers, err := w.Ask(t.Context(), byWebhook(image))
			switch {
			case attaches && (err != nil || !answers[0].Attached):
				t.Errorf("%s: %+v, %v", phase, answers, err)
			case !attaches && (fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), id)):
				t.Errorf("%s: %+v, %v", phase, answers, err)
			}
			w.set(id, func(op *fleet.Operation) { op.Phase, op.FinishedAt = fleet.PhaseSucceeded, w.now })
			if answers, err = w.Ask(t.Context(), byWebhook(image)); err != nil || answers[0].Attached {
				t.Errorf("when %s has ended: %+v, %v", phase, answers, err)
			}
		}
	}
}

// People mean the fleet's image, whichever that is: what runs will do.
func TestAPersonAttachesAlsoWhenTheImageIsLookedUp(t *testing.T) {
	w := newWorld(t)
	id := w.asked("runner-01")
	w.set(id, func(op *fleet.Operation) { op.Phase = fleet.PhaseCreating })
	if answers, err := w.Ask(t.Context(), recreate("runner-01")); err != nil || !answers[0].Attached {
		t.Errorf("%+v, %v", answers, err)
	}
}

// Whoever attached was told that his recreate is under way. A newer event must
// not cancel it under him.
func TestWhatAPersonAttachedToDoesNotGiveWayToANewerEvent(t *testing.T) {
	for name, c := range map[string]struct {
		by    fleet.Actor
		gives bool
	}{
		"a person":        {by: fleet.Actor{Name: "ann", From: "cli"}},
		"a job":           {by: fleet.Actor{Name: "pipeline acme/app@main job 7", From: "10.0.0.1"}},
		"another webhook": {fleet.Actor{Name: "trigger:tagged", From: control.FromWebhook}, true},
	} {
		w := newWorld(t)
		first, err := w.Ask(t.Context(), byWebhook("runner-1"))
		if err != nil {
			t.Fatal(err)
		}
		id := first[0].Operation.ID
		also := recreate("runner-01")
		also.Image, also.By = "runner-1", c.by
		if answers, err := w.Ask(t.Context(), also); err != nil || !answers[0].Attached {
			t.Fatalf("%s: %+v, %v", name, answers, err)
		}
		answers, err := w.Ask(t.Context(), byWebhook("runner-2"))
		if gave := err == nil && !answers[0].Attached; gave != c.gives {
			t.Errorf("%s: %+v, %v", name, answers, err)
		}
		op, err := w.store.Operation(t.Context(), id)
		if err != nil || op.Phase.Finished() != c.gives {
			t.Errorf("%s: it is %s, %v", name, op.Phase, err)
		}
		facts, err := w.store.Facts(t.Context(), 0, id, 10)
		if err != nil || len(facts) < 2 || facts[1].Kind != fleet.FactAsked || !strings.Contains(facts[1].Text, c.by.Name+" from "+c.by.From) {
			t.Errorf("%s: the journal: %+v, %v", name, facts, err)
		}
	}
}

func TestAPlanAttachesNobody(t *testing.T) {
	w := newWorld(t)
	first, err := w.Ask(t.Context(), byWebhook("runner-1"))
	if err != nil {
		t.Fatal(err)
	}
	planned := recreate("runner-01")
	planned.Image = "runner-1"
	if answers, err := w.Plan(t.Context(), planned); err != nil || !answers[0].Attached {
		t.Fatalf("%+v, %v", answers, err)
	}
	if facts, err := w.store.Facts(t.Context(), 0, first[0].Operation.ID, 10); err != nil || len(facts) != 1 {
		t.Errorf("%+v, %v", facts, err)
	}
}
