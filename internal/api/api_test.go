package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestAskingYieldsOneOperationForEachVMInOrder(t *testing.T) {
	w := setup(t)
	asked, err := w.Ask(t.Context(), "gcp", "", client.AskBody{
		Kind: client.AskBodyKindRecreate, Vms: []string{"b", "a"}, Image: new("v2"), Why: new("new image"),
		Policy: &client.PolicyPatch{Cap: new("90s"), OnOverrun: new(client.PolicyPatchOnOverrunAbort)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(asked.Operations) != 2 || asked.Operations[0].Vm != "b" || asked.Operations[1].Vm != "a" {
		t.Fatalf("%+v", asked.Operations)
	}
	op := asked.Operations[0]
	if op.Phase != client.OperationPhaseQueued || op.Policy.Cap != "1m30s" || op.Policy.OnOverrun != "abort" || *op.Image != "v2" {
		t.Errorf("%+v", op)
	}
	if op.By.Name != "alice" || *op.By.From != "127.0.0.1" || *op.By.Why != "new image" {
		t.Errorf("asked by %+v", op.By)
	}
	news, err := w.Events(t.Context(), client.ListEventsParams{After: &asked.After})
	if err != nil || len(news.Events) != 2 || *news.Events[0].Operation != op.Id {
		t.Errorf("events %+v, %v", news, err)
	}
}

func TestAskingTwiceAttachesAndAskingOtherwiseIsRefusedWithTheId(t *testing.T) {
	w := setup(t)
	first := w.ask(t, "a").Operations[0]
	again := w.ask(t, "a").Operations[0]
	if again.Id != first.Id || again.Attached == nil || !*again.Attached {
		t.Errorf("%+v, want it attached to %s", again, first.Id)
	}
	_, err := w.Ask(t.Context(), "gcp", "", client.AskBody{Kind: client.AskBodyKindDelete, Vms: []string{"a"}})
	if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), first.Id) || !strings.Contains(fleet.HintOf(err), "sluice op cancel "+first.Id) {
		t.Errorf("got %v", err)
	}
}

func TestAKeyAnswersARepeatAndRefusesAnotherRequest(t *testing.T) {
	w := setup(t)
	body := client.AskBody{Kind: client.AskBodyKindDrain, Vms: []string{"a"}}
	first, err := w.Ask(t.Context(), "gcp", "key-1", body)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.Ask(t.Context(), "gcp", "key-1", body)
	if err != nil || again.Operations[0].Id != first.Operations[0].Id {
		t.Errorf("%+v, %v", again, err)
	}
	body.Vms = []string{"b"}
	if _, err := w.Ask(t.Context(), "gcp", "key-1", body); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("the key was used for another request: %v", err)
	}
}

func TestWhatIsNotKnownNamesTheNearName(t *testing.T) {
	w := setup(t)
	_, err := w.Ask(t.Context(), "gcpp", "", client.AskBody{Kind: client.AskBodyKindDrain, Vms: []string{"a"}})
	if fleet.CodeOf(err) != fleet.CodeNotFound || fleet.HintOf(err) != `did you mean "gcp"?` {
		t.Errorf("got %v", err)
	}
	_, err = w.Ask(t.Context(), "gcp", "", client.AskBody{Kind: client.AskBodyKindDrain, Vms: []string{"aa"}})
	if fleet.CodeOf(err) != fleet.CodeNotFound || fleet.HintOf(err) != `did you mean "a"?` {
		t.Errorf("got %v", err)
	}
}

func TestARequestThatDoesNotFitIsRefusedWithItsPlace(t *testing.T) {
	w := setup(t)
	tooLong := `{"kind":"drain","vms":["` + strings.Repeat("x", 80<<10) + `"]}`
	for _, c := range []struct{ body, want string }{
		{`{"kind":"explode","vms":["a"]}`, "body.kind"},
		{`{"kind":"drain","vms":[]}`, "body.vms"},
		{`{"kind":"drain","vms":["a"],"forse":true}`, "body.forse"},
		{`{"kind":"drain","vms":["a"],"policy":{"cap":"soon"}}`, "policy.cap"},
		{`{"kind":"drain","vms":["a"],"policy":{"cap":"-5m"}}`, "not positive"},
		{`{"kind":"drain","vms":["a"],"parallel":-1}`, "body.parallel"},
		{`{"kind":"drain","vms":["a"],"image":"v2"}`, "no use for an image"},
		{`{"kind":"recreate","vms":["a"],"no_drain":true}`, "goes with delete only"},
		{`{"kind":"drain"`, "unexpected end"},
		{tooLong, ""},
		{`{"kind":"drain","vms":["a"],"policy":{"on_overrun":"procrastin"}}`, "body.policy.on_overrun"},
	} {
		body, want := c.body, c.want
		response, text := w.raw(t, http.MethodPost, "/api/v1/fleets/gcp/operations", "Bearer "+token, strings.NewReader(body))
		if response.StatusCode < 400 || response.StatusCode >= 500 || !strings.Contains(text, want) {
			t.Errorf("%.80s: %d %s, want %s", body, response.StatusCode, text, want)
		}
		if kind := response.Header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("%.80s: content type %s", body, kind)
		}
		var p struct {
			Code   string
			Status int
		}
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Code != "invalid" || p.Status != response.StatusCode {
			t.Errorf("%.80s: problem %+v, %v", body, p, err)
		}
	}
	if list, err := w.Operations(t.Context(), client.ListOperationsParams{}); err != nil || len(list.Operations) != 0 {
		t.Errorf("something was stored: %+v, %v", list, err)
	}
}

func TestNobodyIsLetInWithoutAToken(t *testing.T) {
	w := setup(t)
	for auth, want := range map[string]string{
		"": "no bearer token", "Bearer nonsense": "not known", "Basic " + token: "no bearer token", "Bearer sluice_old": "expired",
	} {
		response, text := w.raw(t, http.MethodGet, "/api/v1/fleets", auth, nil)
		if response.StatusCode != http.StatusUnauthorized || !strings.Contains(text, want) {
			t.Errorf("%q: %d %s", auth, response.StatusCode, text)
		}
		if response.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%q: no challenge", auth)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/openapi.json"} {
		if response, text := w.raw(t, http.MethodGet, path, "", nil); response.StatusCode != http.StatusOK || text == "" {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
	outsider, err := client.New(client.Options{URL: w.url, Token: "nonsense"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outsider.Fleets(t.Context()); fleet.CodeOf(err) != client.CodeUnauthorized || !strings.Contains(fleet.HintOf(err), "SLUICE_TOKEN") {
		t.Errorf("got %v", err)
	}
}

func TestAnOperationIsFoundByABeginningAndCanBeCanceled(t *testing.T) {
	w := setup(t)
	op := w.ask(t, "a").Operations[0]
	found, err := w.Operation(t.Context(), op.Id[:8])
	if err != nil || found.Id != op.Id {
		t.Fatalf("%+v, %v", found, err)
	}
	canceled, err := w.Cancel(t.Context(), op.Id)
	if err != nil || canceled.CancelRequested == nil || !*canceled.CancelRequested {
		t.Errorf("%+v, %v", canceled, err)
	}
	if _, err := w.Resume(t.Context(), op.Id, "v3"); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("an image was changed while nothing is held: %v", err)
	}
	if _, err := w.Operation(t.Context(), "op-nothing"); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

func TestPlanningStoresNothing(t *testing.T) {
	w := setup(t)
	plan, err := w.Plan(t.Context(), "gcp", client.AskBody{Kind: client.AskBodyKindDelete, Vms: []string{"a"}})
	if err != nil || len(plan.Operations) != 1 || plan.Operations[0].Id != "" {
		t.Fatalf("%+v, %v", plan, err)
	}
	if list, err := w.Operations(t.Context(), client.ListOperationsParams{}); err != nil || len(list.Operations) != 0 {
		t.Errorf("something was stored: %+v, %v", list, err)
	}
	op := w.ask(t, "a").Operations[0]
	if _, err := w.Plan(t.Context(), "gcp", client.AskBody{Kind: client.AskBodyKindDelete, Vms: []string{"a"}}); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), op.Id) {
		t.Errorf("got %v", err)
	}
}

func TestFleetsAndVMsShowStateAndWork(t *testing.T) {
	w := setup(t)
	op := w.ask(t, "a").Operations[0]
	fleets, err := w.Fleets(t.Context())
	if err != nil || len(fleets.Fleets) != 1 || fleets.Fleets[0].States["serving"] != 2 || fleets.Fleets[0].Blind == nil {
		t.Fatalf("%+v, %v", fleets, err)
	}
	vms, err := w.VMs(t.Context(), "gcp")
	if err != nil || len(vms.Vms) != 2 || vms.Vms[0].Operation == nil || vms.Vms[0].Operation.Id != op.Id || vms.Vms[1].Operation != nil {
		t.Errorf("%+v, %v", vms, err)
	}
	if _, err := w.VMs(t.Context(), "other"); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

func TestALongPollAnswersWhenSomethingHappens(t *testing.T) {
	w := setup(t)
	started := make(chan struct{})
	go func() {
		<-started
		_ = w.store.AppendFacts(t.Context(), []fleet.Fact{{At: time.Now(), Fleet: "gcp", Kind: fleet.FactNote, Text: "hello"}})
	}()
	close(started)
	news, err := w.Events(t.Context(), client.ListEventsParams{Wait: new(int64(20))})
	if err != nil || len(news.Events) != 1 || news.Events[0].Text != "hello" || news.Next != news.Events[0].Id {
		t.Errorf("%+v, %v", news, err)
	}
}

func TestTheDoctorsFindingsPassThrough(t *testing.T) {
	w := setup(t)
	report, err := w.Examine(t.Context(), "gcp", []string{"a"})
	if err != nil || len(report.Findings) != 1 || *report.Findings[0].Mend != "install it" || report.Examined[0] != "a" {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestARouteThatIsNoneIsAProblemToo(t *testing.T) {
	w := setup(t)
	response, text := w.raw(t, http.MethodGet, "/api/v1/nothing", "Bearer "+token, nil)
	if response.StatusCode != http.StatusNotFound || !strings.Contains(text, `"code":"not_found"`) {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}

func TestTheDocumentIsOpenAPI31(t *testing.T) {
	w := setup(t)
	_, text := w.raw(t, http.MethodGet, "/openapi.json", "", nil)
	var document struct {
		OpenAPI string                    `json:"openapi"`
		Paths   map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(document.OpenAPI, "3.1") || document.Paths["/api/v1/fleets/{fleet}/operations"]["post"] == nil {
		t.Errorf("%s %v", document.OpenAPI, document.Paths)
	}
}

func TestAServerThatIsNotOursIsSaidToBeNone(t *testing.T) {
	other, err := client.New(client.Options{URL: "http://127.0.0.1:1", Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Fleets(t.Context()); fleet.CodeOf(err) != fleet.CodeUnavailable || !strings.Contains(err.Error(), "http://127.0.0.1:1 does not answer") {
		t.Errorf("got %v", err)
	}
}
