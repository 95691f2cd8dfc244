package access

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// canned is an issuer's answers, without a network.
type canned map[string]any

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := json.Marshal(c[r.URL.Path])
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Request: r, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}, err
}

// gitlab is an issuer with one key, and a token by it.
func gitlab(t testing.TB) (*Pipelines, string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(bytes.NewReader(bytes.Repeat([]byte("seed"), 16)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	p := NewPipelines(Options{
		Issuers: []Issuer{{URL: "https://gitlab.example.com", Audience: "sluice"}}, Clock: still(now), Log: slog.New(slog.DiscardHandler),
		Transport: canned{
			"/.well-known/openid-configuration": map[string]any{"issuer": "https://gitlab.example.com", "jwks_uri": "https://gitlab.example.com/keys"},
			"/keys":                             jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k", Algorithm: "EdDSA", Use: "sig"}}},
		},
	})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(map[string]any{
		"iss": "https://gitlab.example.com", "aud": "sluice", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "nbf": now.Unix(), "jti": "1",
		"project_id": "42", "job_id": "7", "ref": "main", "ref_protected": "true", "runner_id": 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return p, token
}

// Whatever comes, only the one token that was signed is believed; everything
// else is refused for a reason on the list, and nothing breaks.
func FuzzIDToken(f *testing.F) {
	p, good := gitlab(f)
	if claims, err := p.Authenticate(f.Context(), good); err != nil || claims.Project != 42 {
		f.Fatalf("the good one: %+v, %v", claims, err)
	}
	for _, seed := range []string{good, "", "..", "a.b.c", good + "A", "e30.e30.", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJodHRwczovL2dpdGxhYi5leGFtcGxlLmNvbSJ9.AAAA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		_, err := p.Authenticate(context.Background(), token)
		if err == nil {
			if token != good {
				t.Errorf("%q is believed", token)
			}
			return
		}
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || !slices.Contains(Reasons(), refusal.Reason) {
			t.Errorf("%q: %v", token, err)
		}
	})
}

// A signed payload may hold anything: what is read of it is whole, and its name
// is fit for a terminal.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{
		`{"jti":"1","project_id":"42","job_id":"7","exp":1893499200,"ref":"main","user_login":"alice"}`,
		`{"jti":"1","project_id":42,"job_id":7,"exp":1,"ref":"\u001b[31m","project_path":"\u202eevil"}`,
		`{}`, `null`, `[]`, `{"exp":1e99}`, `{"jti":{}}`,
	} {
		f.Add([]byte(seed))
	}
	rules := []Rule{{Claims: []Condition{{Claim: "project_id", Any: []Pattern{{Text: "42"}}}}, Allow: []Action{"drain"}, Fleets: []string{"gcp"}}}
	f.Fuzz(func(t *testing.T, payload []byte) {
		c, err := readClaims(payload)
		if err != nil {
			return
		}
		if c.Project <= 0 || c.Job <= 0 || c.ID == "" || c.Expires.IsZero() {
			t.Errorf("%q was read as %+v", payload, c)
		}
		for _, r := range c.Name() {
			if r < ' ' || r > '~' {
				t.Fatalf("%q names itself %q", payload, c.Name())
			}
		}
		allowed, rulings := judge(rules, c, Request{Action: "drain", Fleet: "gcp"})
		if (allowed == 0) != (c.Project == 42 && slices.Contains(c.texts("ref_protected"), "true")) {
			t.Errorf("%q: rule %d, %+v", payload, allowed, rulings)
		}
	})
}
