package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestAPipelineAsksWithItsIDToken(t *testing.T) {
	d := openDoor(t)
	code, asked, body := d.asked(d.token(nil), "k")
	if code != http.StatusAccepted || len(asked.Operations) != 1 || asked.Follow == nil || asked.SelfDrain != nil {
		t.Fatalf("%d %s", code, body)
	}
	by := asked.Operations[0].By
	if by.Name != "pipeline acme/deploy@main job 1000 (alice)" || !strings.HasPrefix(by.From, "10.0.") {
		t.Errorf("asked by %+v", by)
	}
	if left := asked.Follow.Until.Sub(d.clock.Now()); left < 23*time.Hour {
		t.Errorf("it can be followed for %s only", left)
	}
	if log := d.logged(); !strings.Contains(log, `a pipeline is allowed`) || !strings.Contains(log, `rule=access[1]`) {
		t.Errorf("the decision is not in the log: %s", log)
	}
	if len(d.counts()) != 0 {
		t.Errorf("refused: %v", d.counts())
	}
}

// Case T79: clocks differ, and tests with iat = now never see it.
func TestClocksMayDifferByTheLeeway(t *testing.T) {
	d := openDoor(t)
	now := d.clock.Now()
	for name, change := range map[string]map[string]any{
		"GitLab's clock is ahead":  {"iat": now.Add(55 * time.Second).Unix(), "nbf": now.Add(50 * time.Second).Unix()},
		"GitLab's clock is behind": {"iat": now.Add(-time.Hour).Unix(), "exp": now.Add(-55 * time.Second).Unix()},
		"no nbf":                   {"nbf": nil},
		"ids as numbers":           {"project_id": 42, "job_id": 1000},
		"one audience in a list":   {"aud": []string{audience}},
		"no runner":                {"runner_id": nil},
	} {
		change["jti"] = name
		if code, _, body := d.asked(d.token(change), name); code != http.StatusAccepted {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	if len(d.counts()) != 0 {
		t.Errorf("refused: %v\n%s", d.counts(), d.logged())
	}
}

func TestARuleMayAllowUnprotectedBranchesAndPatterns(t *testing.T) {
	d := openDoor(t)
	for i, change := range []map[string]any{
		{"project_id": "43", "ref_protected": "false"},
		{"project_id": "77", "project_path": "acme/infra-network"},
		{"project_id": "77", "project_path": "acme/app"},
	} {
		change["jti"] = fmt.Sprint(i)
		v := ask(d.token(change))
		v.key, v.body = fmt.Sprint(i), `{"kind":"drain","vms":["c"]}`
		if code, body, _ := d.send(v); code != http.StatusAccepted {
			t.Errorf("%v: %d %s", change, code, body)
		}
	}
}

func TestANewKeyOfGitLabIsFoundAndTheKeysAreNotAskedForAtEveryToken(t *testing.T) {
	asks := 0
	counting := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == mockoidc.JWKSEndpoint {
				asks++
			}
			next.ServeHTTP(w, r)
		})
	}
	rotating := issuer(t, counting)
	d := openDoor(t, func(o *access.Options, _ *api.Options) {
		o.Issuers = append(o.Issuers, access.Issuer{URL: rotating.Issuer(), Audience: audience})
		o.Rules = append(o.Rules, access.Rule{
			Issuer: rotating.Issuer(), Claims: []access.Condition{{Claim: "project_id", Any: texts("42")}},
			Allow: []access.Action{"recreate"}, Fleets: []string{"gcp"},
		})
	})
	d.oidc = rotating
	if code, _, body := d.asked(d.token(nil), "k"); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, body)
	}
	old := rotating.Keypair
	next, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	rotating.Keypair = next
	for range 50 { // an unknown key by the dozen is not a request by the dozen
		if code, _, _ := d.asked(signed(t, next, map[string]any{"kid": "?"}, d.claims(nil)), "k"); code != http.StatusUnauthorized {
			t.Fatalf("status %d", code)
		}
	}
	if asks > 2 {
		t.Errorf("the keys were asked for %d times", asks)
	}
	d.clock.advance(11 * time.Second)
	// go-oidc hands the keys of a request on to those who come before it has put
	// them away, however old they are by then.
	limit := time.Now().Add(10 * time.Second)
	for {
		code, _, body := d.asked(d.token(map[string]any{"jti": "rotated"}), "k2")
		if code == http.StatusAccepted {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("signed with the new key: %d %s", code, body)
		}
	}
	rotating.Keypair = old
	gone := d.token(map[string]any{"jti": "gone"})
	rotating.Keypair = next
	d.clock.advance(11 * time.Second)
	if code, _, body := d.asked(gone, "k3"); code != http.StatusUnauthorized {
		t.Errorf("signed with a key that GitLab took back: %d %s", code, body)
	}
}

func TestAnIssuerThatCannotBeAskedIsUnavailableAndRecovers(t *testing.T) {
	down := true
	flaky := issuer(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down {
				http.Error(w, "no", http.StatusBadGateway)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	d := openDoor(t, func(o *access.Options, _ *api.Options) {
		o.Issuers[0].URL = flaky.Issuer()
		o.Rules[1].Issuer = flaky.Issuer()
	})
	d.oidc = flaky
	code, _, body := d.asked(d.token(nil), "k")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "the keys of "+flaky.Issuer()) || d.counts()[access.ReasonKeys] != 1 {
		t.Errorf("%d %s %v", code, body, d.counts())
	}
	if code, body, _ := d.send(visit{method: http.MethodGet, path: "/api/v1/fleets", auth: "Bearer " + token}); code != http.StatusOK {
		t.Errorf("people are kept out by it: %d %s", code, body)
	}
	down = false
	d.clock.advance(3 * time.Second)
	if code, _, body := d.asked(d.token(nil), "k"); code != http.StatusAccepted {
		t.Errorf("%d %s", code, body)
	}
}

func TestAnIDTokenByAnEllipticKeyIsAccepted(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	elliptical := issuer(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != mockoidc.JWKSEndpoint {
				next.ServeHTTP(w, r)
				return
			}
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "ec", Algorithm: "ES256", Use: "sig"}}})
		})
	})
	d := openDoor(t, func(o *access.Options, _ *api.Options) {
		o.Issuers[0].URL = elliptical.Issuer()
		o.Rules[1].Issuer = elliptical.Issuer()
	})
	d.oidc = elliptical
	made := jwt.NewWithClaims(jwt.SigningMethodES256, d.claims(nil))
	made.Header["kid"] = "ec"
	text, err := made.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, body := d.asked(text, "k"); code != http.StatusAccepted {
		t.Errorf("%d %s", code, body)
	}
}

func TestAnIDTokenServesOneRequestAlsoAfterARestart(t *testing.T) {
	d := openDoor(t)
	idToken := d.token(map[string]any{"jti": "once"})
	_, first, _ := d.asked(idToken, "k")
	d.server = api.New(d.options) // what is bound is in the store
	code, again, body := d.asked(idToken, "k")
	if code != http.StatusAccepted || again.Operations[0].ID != first.Operations[0].ID {
		t.Errorf("a repeat: %d %s", code, body)
	}
	code, _, body = d.asked(idToken, "k2")
	if code != http.StatusForbidden || d.counts()[access.ReasonReplayed] != 1 || !strings.Contains(body, "second id_token") {
		t.Errorf("another request: %d %s", code, body)
	}
	code, _, body = d.asked(d.token(map[string]any{"jti": "once", "job_id": "1001"}), "k")
	if code != http.StatusForbidden || d.counts()[access.ReasonReplayed] != 2 {
		t.Errorf("another job: %d %s", code, body)
	}
	code, body, _ = d.send(visit{http.MethodPost, "/api/v1/fleets/gcp/operations", "Bearer " + idToken, "k", `{"kind":"recreate","vms":["b"]}`, ""})
	if code != http.StatusConflict {
		t.Errorf("another body under the same key: %d %s", code, body)
	}
}

func TestARetriedJobAttachesAndAsksAnewForWhatFailed(t *testing.T) {
	d := openDoor(t)
	job := func(id string) string { return d.token(map[string]any{"job_id": id, "jti": "job " + id}) }
	_, first, _ := d.asked(job("1000"), "k")
	if _, again, body := d.asked(job("1001"), "k"); len(again.Operations) != 1 || again.Operations[0].ID != first.Operations[0].ID {
		t.Fatalf("it does not attach: %s", body)
	}
	op, err := d.store.Operation(t.Context(), first.Operations[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	op.Phase, op.FinishedAt = fleet.PhaseFailed, d.clock.Now()
	if err := d.store.UpdateOperation(t.Context(), op, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	_, third, body := d.asked(job("1002"), "k")
	if len(third.Operations) != 1 || third.Operations[0].ID == op.ID || third.Operations[0].Finished {
		t.Errorf("it does not begin anew: %s", body)
	}
}

func TestTwoProjectsKeysAreNotTheSame(t *testing.T) {
	d := openDoor(t)
	_, first, _ := d.asked(d.token(nil), "recreate")
	v := ask(d.token(map[string]any{"project_id": "43", "jti": "43"}))
	v.key, v.body = "recreate", `{"kind":"drain","vms":["c"]}`
	code, body, _ := d.send(v)
	if code != http.StatusAccepted || strings.Contains(body, first.Operations[0].ID) {
		t.Errorf("%d %s", code, body)
	}
}

func TestARefusalExplainsTheNearRuleAndHidesTheOthers(t *testing.T) {
	d := openDoor(t)
	_, _, body := d.asked(d.token(map[string]any{"ref_protected": "false"}), "k")
	if !strings.Contains(body, `access[1]: ref_protected is not \"true\"`) || strings.Contains(body, "acme/app") || strings.Contains(body, "access[2]") {
		t.Errorf("to the caller: %s", body)
	}
	if log := d.logged(); !strings.Contains(log, "access[2]: project_path is") || !strings.Contains(log, "access[3]: project_id is") {
		t.Errorf("to the log: %s", log)
	}
	_, _, body = d.asked(d.token(map[string]any{"project_id": "5"}), "k")
	if !strings.Contains(body, "none is for this project") || strings.Contains(body, "access[") || !strings.Contains(body, "{project_id: 5}") {
		t.Errorf("to a stranger: %s", body)
	}
}

func TestAFollowTokenReadsItsOperationsAndNothingElse(t *testing.T) {
	d := openDoor(t)
	_, asked, _ := d.asked(d.token(nil), "k")
	mine, follow := asked.Operations[0].ID, "Bearer "+asked.Follow.Token
	other, err := d.options.Control.Ask(t.Context(), control.Intent{Fleet: "gcp", VMs: []string{"c"}, Kind: fleet.KindDrain, By: fleet.Actor{Name: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	theirs := other[0].Operation.ID
	d.server = api.New(d.options)   // it survives a restart
	d.clock.advance(10 * time.Hour) // and the id_token
	for path, want := range map[string]int{
		"/api/v1/operations/" + mine:                                   200,
		"/api/v1/events?operation=" + mine:                             200,
		"/api/v1/operations/" + theirs:                                 403,
		"/api/v1/operations/" + mine[:6]:                               403,
		"/api/v1/operations":                                           403,
		"/api/v1/events":                                               403,
		"/api/v1/events?operation=":                                    403,
		"/api/v1/events?operation=" + theirs:                           403,
		"/api/v1/events?operation=" + mine + "&operation=" + theirs:    403,
		"/api/v1/events?operation=" + mine + "," + theirs:              403,
		"/api/v1/events?after=0&wait=0&operation=" + mine + "&limit=5": 200,
		"/api/v1/fleets":                                               403,
		"/api/v1/fleets/gcp/vms":                                       403,
		"/api/v1/fleets/gcp/doctor":                                    403,
		"/api/v1/nothing":                                              403,
	} {
		if code, body, _ := d.send(visit{method: http.MethodGet, path: path, auth: follow}); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, path := range []string{"/api/v1/operations/" + mine + "/cancel", "/api/v1/operations/" + mine + "/resume", "/api/v1/fleets/gcp/operations"} {
		if code, body, _ := d.send(visit{method: http.MethodPost, path: path, auth: follow, body: recreateA}); code != http.StatusForbidden {
			t.Errorf("POST %s: %d %s", path, code, body)
		}
	}
	d.clock.advance(15 * time.Hour)
	if code, body, _ := d.send(visit{method: http.MethodGet, path: "/api/v1/operations/" + mine, auth: follow}); code != http.StatusUnauthorized {
		t.Errorf("after its end: %d %s", code, body)
	}
}

func TestAPipelineReadsItsFleetsAlone(t *testing.T) {
	d := openDoor(t)
	_, asked, _ := d.asked(d.token(nil), "k")
	auth := "Bearer " + d.token(map[string]any{"jti": "reads"})
	code, body, _ := d.send(visit{method: http.MethodGet, path: "/api/v1/fleets", auth: auth})
	if code != http.StatusOK || !strings.Contains(body, `"gcp"`) || strings.Contains(body, `"other"`) {
		t.Errorf("%d %s", code, body)
	}
	for _, path := range []string{
		"/api/v1/fleets/gcp/vms", "/api/v1/operations?fleet=gcp", "/api/v1/operations/" + asked.Operations[0].ID,
		"/api/v1/events?operation=" + asked.Operations[0].ID, "/api/v1/fleets/gcp/doctor",
	} {
		if code, body, _ := d.send(visit{method: http.MethodGet, path: path, auth: auth}); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	code, body, _ = d.send(visit{http.MethodPost, "/api/v1/fleets/gcp/operations/plan", auth, "", `{"kind":"recreate","vms":["b"]}`, ""})
	if code != http.StatusOK || strings.Contains(body, "follow") {
		t.Errorf("a plan: %d %s", code, body)
	}
}

func TestFailuresOfOneAddressAreSlowedAndItsGoodCallersAreNot(t *testing.T) {
	d := openDoor(t)
	good := visit{method: http.MethodGet, path: "/api/v1/fleets", auth: "Bearer " + token, from: "192.0.2.7"}
	bad := good
	bad.auth = "Bearer guess"
	synctest.Test(t, func(t *testing.T) {
		slow := 0
		for range 30 {
			began := time.Now()
			code, body, _ := d.send(bad)
			if code != http.StatusUnauthorized || !strings.Contains(body, "the bearer token is not known") {
				t.Errorf("%d %s", code, body)
			}
			if time.Since(began) >= time.Second {
				slow++
			}
		}
		if slow < 10 || slow > 20 {
			t.Errorf("%d of 30 were slowed", slow)
		}
		began := time.Now()
		if code, body, _ := d.send(good); code != http.StatusOK || time.Since(began) > 0 {
			t.Errorf("a good one from there: %d %s", code, body)
		}
		bad.from = "192.0.2.8"
		if code, _, _ := d.send(bad); code != http.StatusUnauthorized {
			t.Errorf("another address: %d", code)
		}
	})
}

func TestRequestsAreLimitedByCaller(t *testing.T) {
	d := openDoor(t)
	count := func(auth string, n int) (refused int) {
		for range n {
			if code, _, _ := d.send(visit{method: http.MethodGet, path: "/api/v1/fleets", auth: auth, from: "192.0.2.1"}); code == http.StatusTooManyRequests {
				refused++
			}
		}
		return refused
	}
	idToken := d.token(nil)
	if refused := count("Bearer "+idToken, 400); refused < 50 {
		t.Errorf("%d of 400 refused", refused)
	}
	if d.counts()[access.ReasonRate] < 50 {
		t.Errorf("counted %v", d.counts())
	}
	if refused := count("Bearer "+token, 10); refused != 0 {
		t.Error("one caller's haste slows another")
	}
	if refused := count("Bearer "+d.token(map[string]any{"project_id": "43", "jti": "43"}), 10); refused != 0 {
		t.Error("one project's haste slows another")
	}
	unlimited := httptest.NewRequestWithContext(api.WithCaller(t.Context(), fleet.Actor{Name: "local"}), http.MethodGet, "/api/v1/fleets", nil)
	for range 400 {
		answer := httptest.NewRecorder()
		if d.server.ServeHTTP(answer, unlimited); answer.Code != http.StatusOK {
			t.Fatalf("the socket is limited: %d", answer.Code)
		}
	}
}

// Behind a proxy everybody has one address. A neighbour's guessing must not
// hide from an honest job what it has to change.
func TestWhoIsSlowedIsStillToldWhatIsWrong(t *testing.T) {
	d := openDoor(t)
	const proxy = "192.0.2.1"
	honest := ask(d.token(map[string]any{"aud": "https://wrong.example.com"}))
	honest.from = proxy
	for range 12 {
		d.send(visit{method: http.MethodGet, path: "/api/v1/fleets", auth: "Bearer guess", from: proxy})
	}
	code, body, header := d.send(honest)
	if code != http.StatusUnauthorized || !strings.Contains(body, "was not made for this server alone") || !strings.Contains(body, "write aud: "+audience) {
		t.Errorf("%d %s", code, body)
	}
	if header.Get("WWW-Authenticate") == "" {
		t.Error("it is not said how to come in (RFC 6750)")
	}
	if counts := d.counts(); counts[access.ReasonAudience] != 1 || counts[access.ReasonRate] != 0 {
		t.Errorf("counted %v", counts)
	}
}
