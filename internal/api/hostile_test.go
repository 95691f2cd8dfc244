package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/control"
)

// hostile is a request that must be refused, and the reason that is counted.
type hostile struct {
	name   string
	visit  visit
	reason access.Reason
	status int
}

// part is base64url of JSON, or of text as it is.
func part(v any) string {
	if text, ok := v.(string); ok {
		return base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// signed makes a token with a header of one's own, by a key of one's own.
func signed(t *testing.T, by *mockoidc.Keypair, header map[string]any, claims jwt.MapClaims) string {
	t.Helper()
	made := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	maps.Copy(made.Header, header)
	text, err := made.SignedString(by.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// hmacSigned is the confusion of RS256 with HS256: the public key as password.
func hmacSigned(header map[string]any, claims jwt.MapClaims, key []byte) string {
	text := part(header) + "." + part(claims)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func publicPEM(t *testing.T, k *mockoidc.Keypair) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

const recreateA = `{"kind":"recreate","vms":["a"]}`

// ask is a POST with a token.
func ask(bearer string) visit {
	return visit{method: http.MethodPost, path: "/api/v1/fleets/gcp/operations", auth: "Bearer " + bearer, key: "k", body: recreateA}
}

// forged are tokens that nobody's GitLab made so.
func (d *door) forged(t *testing.T) []hostile {
	t.Helper()
	attacker, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	kid, err := d.oidc.Keypair.KeyID()
	if err != nil {
		t.Fatal(err)
	}
	good := d.token(map[string]any{"jti": "good"})
	parts := strings.Split(good, ".")
	another := strings.Split(d.token(map[string]any{"jti": "another"}), ".")
	pub := publicPEM(t, d.oidc.Keypair)
	ownKey := map[string]any{"kid": "mine", "jwk": jose.JSONWebKey{Key: attacker.PublicKey, KeyID: "mine", Algorithm: "RS256", Use: "sig"}}
	bad := func(name, token string, reason access.Reason) hostile {
		return hostile{name, ask(token), reason, http.StatusUnauthorized}
	}
	return []hostile{
		{"no token at all", visit{method: http.MethodPost, path: "/api/v1/fleets/gcp/operations", body: recreateA}, access.ReasonMissing, 401},
		{"another scheme", visit{method: http.MethodGet, path: "/api/v1/fleets", auth: "Basic " + good}, access.ReasonMissing, 401},
		bad("a made-up token", "sluice_nonsense", access.ReasonUnknown),
		bad("a static token that is over", "sluice_old", access.ReasonExpired),
		bad("a made-up follow token", "sluicef_nonsense", access.ReasonUnknown),
		bad("a huge token", strings.Repeat("a", 17<<10), access.ReasonSize),
		bad("a huge id_token, well signed", d.token(map[string]any{"groups_direct": strings.Repeat("x", 17<<10)}), access.ReasonSize),
		bad("two parts", parts[0]+"."+parts[1], access.ReasonUnknown),
		bad("three parts of nothing", "a.b.c", access.ReasonMalformed),
		bad("empty parts", "..", access.ReasonMalformed),
		bad("a header that is no JSON", part("nothing")+"."+parts[1]+"."+parts[2], access.ReasonMalformed),
		bad("a payload that is a list", parts[0]+"."+part("[]")+"."+parts[2], access.ReasonMalformed),
		bad("something after the payload", parts[0]+"."+part(`{"iss":"x"} {}`)+"."+parts[2], access.ReasonMalformed),
		bad("padding", parts[0]+"=."+parts[1]+"."+parts[2], access.ReasonMalformed),
		bad("alg none", part(map[string]any{"alg": "none"})+"."+parts[1]+".", access.ReasonAlgorithm),
		bad("alg nOnE", part(map[string]any{"alg": "nOnE"})+"."+parts[1]+"."+parts[2], access.ReasonAlgorithm),
		bad("no alg", part(map[string]any{"typ": "JWT"})+"."+parts[1]+"."+parts[2], access.ReasonAlgorithm),
		bad("alg as a list", part(map[string]any{"alg": []string{"RS256"}})+"."+parts[1]+"."+parts[2], access.ReasonAlgorithm),
		bad("HS256 with the public key", hmacSigned(map[string]any{"alg": "HS256", "kid": kid}, d.claims(nil), pub), access.ReasonAlgorithm),
		bad("HS256 sold as RS256", hmacSigned(map[string]any{"alg": "RS256", "kid": kid}, d.claims(nil), pub), access.ReasonSignature),
		bad("another key under the right kid", signed(t, attacker, map[string]any{"kid": kid}, d.claims(nil)), access.ReasonSignature),
		bad("another key under its own kid", signed(t, attacker, map[string]any{"kid": "mine"}, d.claims(nil)), access.ReasonSignature),
		bad("another key without a kid", signed(t, attacker, nil, d.claims(nil)), access.ReasonSignature),
		bad("its own key in the header", signed(t, attacker, ownKey, d.claims(nil)), access.ReasonSignature),
		bad("a link to its own key", signed(t, attacker, map[string]any{"kid": "mine", "jku": d.other.JWKSEndpoint()}, d.claims(nil)), access.ReasonSignature),
		bad("a header that must be understood", signed(t, d.oidc.Keypair, map[string]any{"kid": kid, "crit": []string{"x"}, "x": 1}, d.claims(nil)), access.ReasonSignature),
		bad("the signature of another token", parts[0]+"."+parts[1]+"."+another[2], access.ReasonSignature),
		bad("the payload of another token", parts[0]+"."+part(d.claims(map[string]any{"project_id": "1"}))+"."+parts[2], access.ReasonSignature),
		bad("no signature", parts[0]+"."+parts[1]+".", access.ReasonSignature),
		bad("the other GitLab's name under this one's key", d.token(map[string]any{"iss": d.other.Issuer()}), access.ReasonSignature),
	}
}

// foreign are tokens that were well made, and not for this.
func (d *door) foreign() []hostile {
	now := d.clock.Now()
	bad := func(name string, change map[string]any, reason access.Reason) hostile {
		return hostile{name, ask(d.token(change)), reason, http.StatusUnauthorized}
	}
	return []hostile{
		bad("a GitLab that is not ours", map[string]any{"iss": "https://gitlab.evil.example"}, access.ReasonIssuer),
		bad("an issuer with a slash more", map[string]any{"iss": d.oidc.Issuer() + "/"}, access.ReasonIssuer),
		bad("an issuer in capitals", map[string]any{"iss": strings.ToUpper(d.oidc.Issuer())}, access.ReasonIssuer),
		bad("no issuer", map[string]any{"iss": nil}, access.ReasonIssuer),
		bad("an issuer that is a number", map[string]any{"iss": 7}, access.ReasonIssuer),
		bad("another audience", map[string]any{"aud": "sigstore"}, access.ReasonAudience),
		bad("a look-alike audience", map[string]any{"aud": audience + ".evil.example"}, access.ReasonAudience),
		bad("our audience and another", map[string]any{"aud": []string{audience, "sigstore"}}, access.ReasonAudience),
		bad("no audience", map[string]any{"aud": nil}, access.ReasonAudience),
		bad("expired beyond the leeway", map[string]any{"iat": now.Add(-time.Hour).Unix(), "exp": now.Add(-65 * time.Second).Unix()}, access.ReasonExpired),
		bad("made in the future", map[string]any{"iat": now.Add(65 * time.Second).Unix(), "exp": now.Add(time.Hour).Unix()}, access.ReasonNotYet),
		bad("valid in the future", map[string]any{"nbf": now.Add(65 * time.Second).Unix(), "exp": now.Add(time.Hour).Unix()}, access.ReasonNotYet),
		bad("no end", map[string]any{"exp": nil}, access.ReasonClaims),
		bad("an end in words", map[string]any{"exp": "tomorrow"}, access.ReasonClaims),
		bad("an end beyond time", map[string]any{"exp": json.Number("1e30")}, access.ReasonClaims),
		bad("an end before the beginning", map[string]any{"exp": now.Add(-time.Minute).Unix(), "iat": now.Unix()}, access.ReasonClaims),
		bad("no beginning", map[string]any{"iat": nil}, access.ReasonClaims),
		bad("no jti", map[string]any{"jti": nil}, access.ReasonClaims),
		bad("an empty jti", map[string]any{"jti": ""}, access.ReasonClaims),
		bad("an endless jti", map[string]any{"jti": strings.Repeat("j", 300)}, access.ReasonClaims),
		bad("no job", map[string]any{"job_id": nil}, access.ReasonClaims),
		bad("no project", map[string]any{"project_id": nil}, access.ReasonClaims),
		bad("the project under another name", map[string]any{"project_id": nil, "Project_ID": "42"}, access.ReasonClaims),
		bad("a project that begins as ours", map[string]any{"project_id": "42abc"}, access.ReasonClaims),
		bad("a project with zeros before it", map[string]any{"project_id": "0042"}, access.ReasonClaims),
		bad("a runner that is an object", map[string]any{"runner_id": map[string]any{"id": 7}}, access.ReasonClaims),
	}
}

// unwelcome are good tokens of jobs that may not do what they ask for.
func (d *door) unwelcome() []hostile {
	n := 0
	bad := func(name string, change map[string]any, body string) hostile {
		n++
		claims := map[string]any{"jti": fmt.Sprint("unwelcome ", n)}
		maps.Copy(claims, change)
		v := ask(d.token(claims))
		v.body = body
		return hostile{name, v, access.ReasonPolicy, http.StatusForbidden}
	}
	path := func(path string) map[string]any { return map[string]any{"project_id": "77", "project_path": path} }
	const drainA = `{"kind":"drain","vms":["a"]}`
	return []hostile{
		bad("ref_protected as a boolean", map[string]any{"ref_protected": true}, recreateA),
		bad("ref_protected in capitals", map[string]any{"ref_protected": "True"}, recreateA),
		bad("ref_protected as a list of both", map[string]any{"ref_protected": []any{true, "false"}}, recreateA),
		bad("an unprotected branch", map[string]any{"ref_protected": "false"}, recreateA),
		bad("a branch of which nothing is said", map[string]any{"ref_protected": nil}, recreateA),
		bad("another project", map[string]any{"project_id": "41"}, recreateA),
		bad("this project's number at another GitLab's rule", map[string]any{"project_id": "1"}, drainA),
		bad("a path with a tail", path("acme/app-evil"), drainA),
		bad("a path below", path("acme/app/evil"), drainA),
		bad("a path in capitals", path("Acme/App"), drainA),
		bad("a path with a letter that only looks alike", path("аcme/app"), drainA),
		bad("a path with a space", path("acme/app "), drainA),
		bad("a path that the pattern's star must not reach", path("acme/infra-x/evil"), drainA),
		bad("a path as a list", map[string]any{"project_id": "77", "project_path": map[string]any{"acme/app": 1}}, drainA),
		bad("another kind", nil, `{"kind":"delete","vms":["a"]}`),
		bad("a VM outside of the rule", nil, `{"kind":"recreate","vms":["a","c"]}`),
		bad("a cap above the rule's", nil, `{"kind":"recreate","vms":["a"],"policy":{"cap":"31m"}}`),
		bad("a cap below the fleet's own", nil, `{"kind":"recreate","vms":["a"],"policy":{"cap":"1s"}}`),
		bad("a wait for jobs beyond the rule's cap", nil, `{"kind":"recreate","vms":["a"],"policy":{"on_overrun":"wait"}}`),
		bad("a larger budget", nil, `{"kind":"recreate","vms":["a"],"parallel":2}`),
		bad("another owner's drop-in", nil, `{"kind":"recreate","vms":["a"],"take_over":true}`),
		bad("a policy that weakens the proof", nil, `{"kind":"recreate","vms":["a"],"policy":{"on_unproven":"proceed"}}`),
		{"another fleet", func() visit {
			v := ask(d.token(map[string]any{"jti": "another fleet"}))
			v.path = "/api/v1/fleets/other/operations"
			v.body = `{"kind":"recreate","vms":["x"]}`
			return v
		}(), access.ReasonPolicy, 403},
		{"another fleet's VMs", visit{method: http.MethodGet, path: "/api/v1/fleets/other/vms", auth: "Bearer " + d.token(nil)}, access.ReasonPolicy, 403},
		{"everybody's operations", visit{method: http.MethodGet, path: "/api/v1/operations", auth: "Bearer " + d.token(nil)}, access.ReasonScope, 403},
		{"everybody's events", visit{method: http.MethodGet, path: "/api/v1/events", auth: "Bearer " + d.token(nil)}, access.ReasonScope, 403},
		{"a cancel by a pipeline", visit{method: http.MethodPost, path: "/api/v1/operations/op-x/cancel", auth: "Bearer " + d.token(nil)}, access.ReasonScope, 403},
		{"a change without a key", func() visit { v := ask(d.token(map[string]any{"jti": "no key"})); v.key = ""; return v }(), access.ReasonNoKey, 422},
	}
}

// Each is refused with a problem that says why and what to do, counted once
// under its reason and no other, and neither the answer nor the log has the
// token.
func TestHostileTokensAreRefusedEachForItsCountedReason(t *testing.T) {
	d := openDoor(t)
	list := append(append(d.forged(t), d.foreign()...), d.unwelcome()...)
	if len(list) < 40 {
		t.Fatalf("only %d", len(list))
	}
	for _, h := range list {
		t.Run(h.name, func(t *testing.T) {
			before := d.counts()
			code, body, header := d.send(h.visit)
			if code != h.status || header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%d %s", code, body)
			}
			var p struct{ Detail, Code, Hint string }
			if err := json.Unmarshal([]byte(body), &p); err != nil || p.Detail == "" || p.Code == "" || p.Hint == "" {
				t.Errorf("the problem says too little: %s", body)
			}
			for reason, n := range d.counts() {
				if want := before[reason] + map[bool]int{true: 1}[reason == h.reason]; n != want {
					t.Errorf("%s was counted %d times, want %d: %s", reason, n, want, body)
				}
			}
			if d.counts()[h.reason] == before[h.reason] {
				t.Errorf("%s was not counted", h.reason)
			}
			_, bearer, _ := strings.Cut(h.visit.auth, " ")
			for _, secret := range strings.Split(bearer, ".") {
				if len(secret) > 20 && (strings.Contains(body, secret) || strings.Contains(d.logged(), secret)) {
					t.Errorf("the token was repeated")
				}
			}
		})
	}
	if ops, err := d.store.Operations(t.Context(), control.Filter{}); err != nil || len(ops) != 0 {
		t.Errorf("something was stored: %+v, %v", ops, err)
	}
	t.Logf("%d hostile requests, each refused: %v", len(list), d.counts())
}
