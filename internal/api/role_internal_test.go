package api

import (
	"errors"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// A visitor that somebody forgot to give a role has none of the rights of
// another.
func TestWhoWasGivenNoRoleMayDoNothing(t *testing.T) {
	s := &Server{Options: Options{Fleets: map[string]fleet.Spec{"gcp": {}}}}
	zero := &call{Context: t.Context(), visitor: &visitor{}}
	intent := &control.Intent{Fleet: "gcp", VMs: []string{"a"}, Kind: fleet.KindDelete}
	for what, err := range map[string]error{
		"enter": s.mayEnter(nil, zero.visitor), "ask": s.permit(zero, intent, false), "plan": s.permit(zero, intent, true),
	} {
		if refusal, ok := errors.AsType[*access.Refusal](err); !ok || refusal.Reason != access.ReasonScope {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s.reads(zero, "gcp") {
		t.Error("it reads")
	}
}
