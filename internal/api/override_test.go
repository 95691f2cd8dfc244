package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// withPolicy opens a door whose fleet gcp has a drain policy of its own, and
// whose rule for project 42 allows recreate, and what is given beside it.
func withPolicy(t *testing.T, change func(*fleet.DrainPolicy), maxCap time.Duration, also ...access.Action) *door {
	t.Helper()
	return openDoor(t, func(a *access.Options, o *api.Options) {
		spec := o.Fleets["gcp"]
		change(&spec.Drain)
		o.Fleets["gcp"] = spec
		o.Control = control.New(control.Options{Fleets: o.Fleets, Store: a.Store.(control.Store), Waker: asleep{}, Clock: a.Clock, Log: o.Log})
		a.Rules[1].Allow, a.Rules[1].MaxCap = append(a.Rules[1].Allow, also...), maxCap
	})
}

// planned asks for the plan of a recreate under a policy.
func (d *door) planned(policy string) (int, string) {
	d.t.Helper()
	body := `{"kind":"recreate","vms":["a"],"policy":` + policy + `}`
	code, answer, _ := d.send(visit{http.MethodPost, "/api/v1/fleets/gcp/operations/plan", "Bearer " + d.token(nil), "", body, ""})
	return code, answer
}

// The fleet's policy is what its jobs were promised; a rule that allows a
// recreate does not allow to break that.
func TestWhatIsHarsherThanTheFleetsPolicyNeedsOverrideAndWhatIsGentlerDoesNot(t *testing.T) {
	for _, c := range []struct {
		own    fleet.Overrun
		policy string
		maxCap time.Duration
		needs  string // "" = allowed
	}{
		{fleet.OverrunAbort, `{"cap":"1s"}`, 0, "a cap of 1s, shorter than the fleet's own 1h0m0s"},
		{fleet.OverrunAbort, `{"cap":"1h"}`, 0, ""},
		{fleet.OverrunAbort, `{"cap":"2h","on_overrun":"abort"}`, 0, ""},
		{fleet.OverrunAbort, `{"on_overrun":"proceed"}`, 0, "on_overrun proceed, harsher than the fleet's own abort"},
		{fleet.OverrunAbort, `{"on_overrun":"wait"}`, 0, "on_overrun wait, harsher than the fleet's own abort"},
		{fleet.OverrunWait, `{"on_overrun":"proceed"}`, 0, "on_overrun proceed, harsher than the fleet's own wait"},
		{fleet.OverrunWait, `{"on_overrun":"wait"}`, 2 * time.Hour, ""},
		{fleet.OverrunWait, `{"on_overrun":"abort"}`, 0, ""},
		{fleet.OverrunProceed, `{"on_overrun":"abort"}`, 0, ""},
		{fleet.OverrunProceed, `{"on_overrun":"wait"}`, 0, ""},
		{fleet.OverrunProceed, `{"on_overrun":"wait"}`, 4 * time.Hour, ""},
		{fleet.OverrunProceed, `{"on_overrun":"wait"}`, 2 * time.Hour, "on_overrun wait: that may last 4h0m0s, beyond its max_cap of 2h0m0s"},
		{fleet.OverrunAbort, `{"cap":"1s","on_overrun":"proceed"}`, 0, "shorter than the fleet's own 1h0m0s, and for on_overrun proceed"},
		{fleet.OverrunProceed, `{"hard_cap":"5h"}`, 0, "hard_cap"},
	} {
		t.Run(fmt.Sprint(c.own, c.policy, c.maxCap), func(t *testing.T) {
			change := func(p *fleet.DrainPolicy) { p.Cap, p.OnOverrun = time.Hour, c.own }
			d := withPolicy(t, change, c.maxCap)
			code, body := d.planned(c.policy)
			switch {
			case c.needs == "" && code != http.StatusOK:
				t.Errorf("%d %s", code, body)
			case c.needs != "" && (code != http.StatusForbidden || !strings.Contains(body, "it does not allow override") || !strings.Contains(body, c.needs)):
				t.Errorf("%d %s", code, body)
			}
			if c.needs == "" {
				return
			}
			d = withPolicy(t, change, c.maxCap, access.ActionOverride)
			if code, body := d.planned(c.policy); code != http.StatusOK {
				t.Errorf("with override: %d %s", code, body)
			}
		})
	}
}

func TestARefusedPolicyTouchesNothing(t *testing.T) {
	d := withPolicy(t, func(p *fleet.DrainPolicy) { p.Cap, p.OnOverrun = time.Hour, fleet.OverrunAbort }, 0)
	body := `{"kind":"recreate","vms":["a"],"policy":{"cap":"1s","on_overrun":"proceed"}}`
	code, answer, _ := d.send(visit{http.MethodPost, "/api/v1/fleets/gcp/operations", "Bearer " + d.token(nil), "k", body, ""})
	if code != http.StatusForbidden || d.counts()[access.ReasonPolicy] != 1 {
		t.Errorf("%d %s", code, answer)
	}
	if ops, err := d.store.Operations(t.Context(), control.Filter{}); err != nil || len(ops) != 0 {
		t.Errorf("%d operations, %v", len(ops), err)
	}
}
