package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"gitlab.com/sluice-runners/sluice/internal/access"
)

// signing is a GitLab that signs id_tokens.
func signing(t *testing.T) *mockoidc.MockOIDC {
	t.Helper()
	m, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Shutdown() })
	return m
}

// What a rule of the configuration says is what is asked of a job, every part
// of it.
func TestARuleOfTheConfigurationHoldsInEveryPart(t *testing.T) {
	t.Parallel()
	ours, theirs := signing(t), signing(t)
	const audience, otherAudience = "https://sluice.example.com", "https://sluice.example.org"
	url := serving(t, configured(t, fmt.Sprintf(`
server:
  oidc:
    - {issuer: %[1]s, audience: %[3]s}
    - {issuer: %[2]s, audience: %[4]s}
access:
  - issuer: %[1]s
    claims: {project_id: 42, ref: [main, {glob: "release/*"}]}
    allow: [recreate]
    fleets: [gcp]
    vms: [{glob: "spare-*"}]
    max_cap: 30m
`, ours.Issuer(), theirs.Issuer(), audience, otherAudience)))

	type request struct {
		from                      *mockoidc.MockOIDC
		aud, project, ref         string
		fleet, kind, vm, duration string
	}
	good := request{ours, audience, "42", "release/7", "gcp", "recreate", "spare-1", "20m"}
	with := func(change func(*request)) request {
		r := good
		change(&r)
		return r
	}
	n := 0
	send := func(r request) (int, string) {
		n++
		now := time.Now()
		token, err := r.from.Keypair.SignJWT(jwt.MapClaims{
			"iss": r.from.Issuer(), "aud": r.aud, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": fmt.Sprint(n),
			"project_id": r.project, "namespace_path": "acme", "project_path": "acme/app", "job_id": fmt.Sprint(n),
			"ref": r.ref, "ref_protected": "true",
		})
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"kind":%q,"vms":[%q],"policy":{"cap":%q}}`, r.kind, r.vm, r.duration)
		return post(t, url+"/api/v1/fleets/"+r.fleet+"/operations", body, map[string]string{
			"Authorization": "Bearer " + token, "Idempotency-Key": fmt.Sprint(n),
		})
	}
	for name, c := range map[string]struct {
		request request
		status  int
		says    string
	}{
		"another issuer":   {with(func(r *request) { r.from, r.aud = theirs, otherAudience }), http.StatusForbidden, "none is for this project"},
		"another audience": {with(func(r *request) { r.aud = otherAudience }), http.StatusUnauthorized, "not made for this server"},
		"another project":  {with(func(r *request) { r.project = "43" }), http.StatusForbidden, "none is for this project"},
		"another ref":      {with(func(r *request) { r.ref = "topic" }), http.StatusForbidden, "ref is"},
		"another action":   {with(func(r *request) { r.kind = "drain" }), http.StatusForbidden, "it allows recreate, not drain"},
		"another fleet":    {with(func(r *request) { r.fleet = "aws" }), http.StatusForbidden, "it is not for fleet"},
		"another VM":       {with(func(r *request) { r.vm = "runner-01" }), http.StatusForbidden, "is not among its vms"},
		"a longer cap":     {with(func(r *request) { r.duration = "31m" }), http.StatusForbidden, "above its max_cap of 30m"},
		"all of it":        {good, http.StatusAccepted, `"vm":"spare-1"`},
		"in its own words": {with(func(r *request) { r.ref, r.vm = "main", "spare-2" }), http.StatusAccepted, `"vm":"spare-2"`},
	} {
		if status, body := send(c.request); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %s\nwant %d, %s", name, status, body, c.status, c.says)
		}
	}
}

func TestEachRefusedCallerIsCountedByItsReason(t *testing.T) {
	t.Parallel()
	url := serving(t, configured(t, "server: {tokens: [{name: alice, sha256: "+access.Hash(bearer)+"}]}\n"))
	series := func(reason string, n int) {
		t.Helper()
		if line := fmt.Sprintf("sluice_access_refusals_total{reason=%q} %d\n", reason, n); !strings.Contains(get(t, url+"/metrics"), line) {
			t.Errorf("no %s", line)
		}
	}
	series("unknown", 0)
	body := `{"kind":"drain","vms":["runner-01"]}`
	for header, want := range map[string]int{"Bearer wrong": http.StatusUnauthorized, "Bearer " + bearer: http.StatusOK} {
		if status, text := post(t, url+"/api/v1/fleets/gcp/operations/plan", body, map[string]string{"Authorization": header}); status != want {
			t.Errorf("%s: %d %s", header, status, text)
		}
	}
	series("unknown", 1)
	series("missing", 0)
}
