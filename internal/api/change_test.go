package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestADrainIsExtendedPutUnderAnotherPolicyAndSkippedByItsId(t *testing.T) {
	w := setup(t)
	id := w.ask(t, "a").Operations[0].Id
	op, err := w.Change(t.Context(), id[:8], "k", client.ChangeBody{Extend: &client.ExtendBody{By: new("10m")}, Why: new("a release")})
	if err != nil || op.Policy.Cap != "20m0s" {
		t.Fatalf("%+v, %v", op, err)
	}
	if op, err = w.Change(t.Context(), id, "k", client.ChangeBody{Extend: &client.ExtendBody{By: new("10m")}, Why: new("again")}); err != nil || op.Policy.Cap != "20m0s" {
		t.Errorf("a repeat under its key: %+v, %v", op.Policy, err)
	}
	op, err = w.Change(t.Context(), id, "", client.ChangeBody{Policy: &client.PolicyPatch{OnOverrun: new(client.PolicyPatchOnOverrunWait), HardCap: new("6h")}})
	if err != nil || op.Policy.OnOverrun != "wait" || op.Policy.HardCap != "6h0m0s" || op.Policy.Cap != "20m0s" {
		t.Errorf("%+v, %v", op, err)
	}
	if op, err = w.SkipDrain(t.Context(), id, "", "it hangs"); err != nil || *op.Verdict != "skipped" {
		t.Errorf("%+v, %v", op, err)
	}
	facts, err := w.store.Facts(t.Context(), 0, id, 10)
	if err != nil || len(facts) != 4 {
		t.Fatalf("%+v, %v", facts, err)
	}
	for i, want := range []string{"an extension was asked for", "another policy was asked for", "skipping the drain was asked for"} {
		if text := facts[i+1].Text; !strings.Contains(text, want) || !strings.Contains(text, " by alice from 127.0.0.1") {
			t.Errorf("%q, want %q", text, want)
		}
	}
}

// RFC 9457: what was wrong, where, and how to mend it.
func TestAChangeThatCannotBeIsAProblemThatSaysWhatIsPossible(t *testing.T) {
	w := setup(t)
	id := w.ask(t, "a").Operations[0].Id
	for name, c := range map[string]struct {
		body client.ChangeBody
		code fleet.Code
		says string
	}{
		"nothing":      {client.ChangeBody{}, fleet.CodeInvalid, "0 changes"},
		"both":         {client.ChangeBody{Extend: &client.ExtendBody{By: new("1m")}, Policy: &client.PolicyPatch{Cap: new("1h")}}, fleet.CodeInvalid, "2 changes"},
		"no duration":  {client.ChangeBody{Extend: &client.ExtendBody{By: new("ten")}}, fleet.CodeInvalid, `extend.by: "ten" is not a duration`},
		"a wrong word": {client.ChangeBody{Policy: &client.PolicyPatch{HardCap: new("x")}}, fleet.CodeInvalid, `policy.hard_cap: "x" is not a duration`},
		"a moment":     {client.ChangeBody{Extend: &client.ExtendBody{To: new(time.Now().Add(time.Hour))}}, fleet.CodeConflict, "intake is not stopped yet"},
	} {
		if _, err := w.Change(t.Context(), id, "", c.body); fleet.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || fleet.HintOf(err) == "" {
			t.Errorf("%s: %v, hint %q", name, err, fleet.HintOf(err))
		}
	}
	if _, err := w.Change(t.Context(), "op-none", "", client.ChangeBody{Extend: &client.ExtendBody{By: new("1m")}}); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("%v", err)
	}
	op, err := w.store.Operation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	op.Phase, op.Delete.IntentAt = fleet.PhaseDeleting, time.Now()
	if err := w.store.UpdateOperation(t.Context(), op, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SkipDrain(t.Context(), id, "", ""); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "committed") {
		t.Errorf("after the intent: %v", err)
	}
}

// changing sends a change of an operation as the job of project 42.
func (d *door) changing(id, what, body, key string) (int, string) {
	d.t.Helper()
	method, path := http.MethodPatch, "/api/v1/operations/"+id
	if what == "skip-drain" {
		method, path = http.MethodPost, path+"/skip-drain"
	}
	code, answer, _ := d.send(visit{method, path, "Bearer " + d.token(map[string]any{"jti": "change-" + key}), key, body, ""})
	return code, answer
}

// What a pipeline may change has actions of its own; what is harsher than the
// fleet's policy needs override, by the judgement that asking goes by.
func TestAPipelineChangesADrainOnlyAsItsRuleSays(t *testing.T) {
	const longer, wait, harsher = `{"extend":{"by":"10m"}}`, `{"policy":{"on_overrun":"wait"}}`, `{"policy":{"cap":"1s"}}`
	for _, c := range []struct {
		what, body string
		allow      []access.Action
		maxCap     time.Duration
		code       int
		says       string
	}{
		{"extend", longer, nil, 0, 403, "it allows recreate, not extend"},
		{"extend", longer, []access.Action{"set-policy", "skip-drain", "override"}, 0, 403, "not extend"},
		{"extend", longer, []access.Action{"extend"}, 0, 200, ""},
		{"extend", longer, []access.Action{"extend"}, 15 * time.Minute, 403, "the cap of 20m0s is above its max_cap of 15m0s"},
		{"extend", longer, []access.Action{"extend"}, 20 * time.Minute, 200, ""},
		{"policy", wait, []access.Action{"extend"}, 0, 403, "not set-policy"},
		{"policy", wait, []access.Action{"set-policy"}, 0, 200, ""},
		{"policy", wait, []access.Action{"set-policy"}, 2 * time.Hour, 403, "that may last 4h0m0s, beyond its max_cap of 2h0m0s"},
		{"policy", harsher, []access.Action{"set-policy"}, 0, 403, "a cap of 1s, shorter than the fleet's own 10m0s"},
		{"policy", harsher, []access.Action{"set-policy", "override"}, 0, 200, ""},
		{"policy", `{"policy":{"unreachable":"proceed"}}`, []access.Action{"set-policy"}, 0, 403, "override, which is needed for unreachable"},
		{"skip-drain", `{}`, []access.Action{"override"}, 0, 403, "not skip-drain"},
		{"skip-drain", `{}`, []access.Action{"skip-drain"}, 0, 403, "override, which is needed for skip-drain"},
		{"skip-drain", `{}`, []access.Action{"skip-drain", "override"}, 0, 200, ""},
	} {
		t.Run(fmt.Sprint(c.what, c.body, c.allow, c.maxCap), func(t *testing.T) {
			d := withPolicy(t, func(*fleet.DrainPolicy) {}, c.maxCap, c.allow...)
			_, asked, _ := d.asked(d.token(nil), "k")
			id := asked.Operations[0].ID
			before, _ := d.store.Operation(t.Context(), id)
			code, body := d.changing(id, c.what, c.body, "k2")
			if code != c.code || !strings.Contains(body, c.says) {
				t.Errorf("%d %s", code, body)
			}
			after, _ := d.store.Operation(t.Context(), id)
			if changed := after.Revision != before.Revision; changed != (c.code == 200) {
				t.Errorf("changed %t", changed)
			}
		})
	}
}

func TestAPipelineChangesNoOtherFleetsDrainAndNeedsAKey(t *testing.T) {
	d := withPolicy(t, func(*fleet.DrainPolicy) {}, 0, "extend")
	_, asked, _ := d.asked(d.token(nil), "k")
	id := asked.Operations[0].ID
	if code, body := d.changing(id, "extend", `{"extend":{"by":"10m"}}`, ""); code != http.StatusUnprocessableEntity || !strings.Contains(body, "Idempotency-Key") {
		t.Errorf("without a key: %d %s", code, body)
	}
	code, body, _ := d.send(visit{http.MethodPost, "/api/v1/fleets/other/operations", "Bearer " + token, "", `{"kind":"drain","vms":["x"]}`, ""})
	if code != http.StatusAccepted {
		t.Fatalf("%d %s", code, body)
	}
	list, err := d.store.Unfinished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].Fleet != "other" {
			continue
		}
		if code, body := d.changing(list[i].ID, "extend", `{"extend":{"by":"10m"}}`, "k9"); code != http.StatusForbidden {
			t.Errorf("another fleet's: %d %s", code, body)
		}
	}
}
