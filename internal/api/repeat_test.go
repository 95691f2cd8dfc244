package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/whereabouts"
)

// locator answers the same about every job.
type locator whereabouts.Place

func (l locator) Locate(context.Context, string, whereabouts.Job) whereabouts.Place {
	return whereabouts.Place(l)
}

// locating has every job found there, in a fleet of the first GitLab.
func locating(place whereabouts.Place) func(*access.Options, *api.Options) {
	return func(a *access.Options, o *api.Options) {
		spec := o.Fleets["gcp"]
		spec.GitLabURL = a.Issuers[0].URL
		o.Fleets["gcp"], o.Locator = spec, locator(place)
	}
}

// asksForBoth sends one request for a and b, by a job of the fleet's runner; the
// same again is a repeat.
func (d *door) asksForBoth() api.Asked {
	d.t.Helper()
	v := visit{
		method: http.MethodPost, path: "/api/v1/fleets/gcp/operations", key: "both", body: `{"kind":"recreate","vms":["a","b"]}`,
		auth: "Bearer " + d.token(map[string]any{"runner_id": 7, "jti": "both"}),
	}
	code, body, _ := d.send(v)
	var asked api.Asked
	if err := json.Unmarshal([]byte(body), &asked); err != nil || code != http.StatusAccepted || len(asked.Operations) != 2 {
		d.t.Fatalf("%d %s, %v", code, body, err)
	}
	return asked
}

// ends has an operation end well.
func (d *door) ends(asked api.Asked, vm string) {
	d.t.Helper()
	for i := range asked.Operations {
		if asked.Operations[i].VM != vm {
			continue
		}
		op, err := d.store.Operation(d.t.Context(), asked.Operations[i].ID)
		if err != nil {
			d.t.Fatal(err)
		}
		op.Phase, op.FinishedAt = fleet.PhaseSucceeded, d.clock.Now()
		if err := d.store.UpdateOperation(d.t.Context(), op, nil, nil, nil); err != nil {
			d.t.Fatal(err)
		}
	}
}

// A retried job, or one whose first answer was lost, asks again when its own VM
// may be done: then nothing is in its way any more, and it waits for the rest.
func TestARepeatIsToldOfItsOwnVMUntilThatVMIsDone(t *testing.T) {
	d := openDoor(t, locating(whereabouts.Place{VM: "a", Reason: "its container is there"}))
	asked := d.asksForBoth()
	if self := asked.SelfDrain; self == nil || !self.Sure || self.VM != "a" {
		t.Fatalf("self_drain %+v", self)
	}
	d.ends(asked, "b")
	if self := d.asksForBoth().SelfDrain; self == nil || self.VM != "a" {
		t.Errorf("the other VM is done, its own is ahead: %+v", self)
	}
	d.ends(asked, "a")
	if self := d.asksForBoth().SelfDrain; self != nil {
		t.Errorf("both are done: %+v", self)
	}

	d = openDoor(t, locating(whereabouts.Place{VM: "a", Reason: "its container is there"}))
	asked = d.asksForBoth()
	d.ends(asked, "a")
	if self := d.asksForBoth().SelfDrain; self != nil {
		t.Errorf("its own VM is done, only the other is ahead: %+v", self)
	}
}

func TestARepeatOfAJobThatWasNotFoundIsToldUntilEveryVMIsDone(t *testing.T) {
	d := openDoor(t, locating(whereabouts.Place{Reason: "no host shows it"}))
	asked := d.asksForBoth()
	d.ends(asked, "a")
	if self := d.asksForBoth().SelfDrain; self == nil || self.Sure || self.VM != "" {
		t.Errorf("it may run on the other one: %+v", self)
	}
	d.ends(asked, "b")
	if self := d.asksForBoth().SelfDrain; self != nil {
		t.Errorf("all are done: %+v", self)
	}
}

// Without runner.id in the configuration any runner may be the fleet's, but one
// that GitLab itself hosts.
func TestAFleetWithoutARunnersNumberWarnsEveryJobButThoseThatGitLabHosts(t *testing.T) {
	d := openDoor(t, locating(whereabouts.Place{Reason: "no host shows it"}), func(_ *access.Options, o *api.Options) {
		spec := o.Fleets["gcp"]
		spec.RunnerID = 0
		o.Fleets["gcp"] = spec
	})
	for environment, warned := range map[string]bool{"gitlab-hosted": false, "self-hosted": true} {
		_, asked, body := d.asked(d.token(map[string]any{"runner_environment": environment, "jti": environment}), "k")
		if len(asked.Operations) != 1 || (asked.SelfDrain != nil) != warned {
			t.Errorf("%s: %s", environment, body)
		}
	}
}
