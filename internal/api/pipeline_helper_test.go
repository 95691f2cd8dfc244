package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

const audience = "https://sluice.example.com"

// shifting is the real clock, moved.
type shifting struct {
	mu sync.Mutex
	by time.Duration
}

func (s *shifting) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.by)
}

func (s *shifting) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by += d
}

// door is the API with two GitLabs whose jobs may come, a real store, and what
// was counted and logged.
type door struct {
	t       testing.TB
	server  *api.Server
	store   *store.Store
	clock   *shifting
	oidc    *mockoidc.MockOIDC
	other   *mockoidc.MockOIDC
	options api.Options

	mu      sync.Mutex
	refused map[access.Reason]int
	log     bytes.Buffer
	sent    int
}

func issuer(t testing.TB, change func(http.Handler) http.Handler) *mockoidc.MockOIDC {
	t.Helper()
	m, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Keypair, err = mockoidc.RandomKeypair(2048); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		if err := m.AddMiddleware(change); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(listener, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Shutdown() })
	return m
}

func texts(list ...string) []access.Pattern {
	var out []access.Pattern
	for _, text := range list {
		out = append(out, access.Pattern{Text: text})
	}
	return out
}

func openDoor(t testing.TB, change ...func(*access.Options, *api.Options)) *door {
	t.Helper()
	d := &door{t: t, clock: &shifting{}, oidc: issuer(t, nil), other: issuer(t, nil), refused: map[access.Reason]int{}}
	var err error
	d.store, err = store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "door.db"), Clock: d.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.store.Close() })
	past := time.Now().Add(-time.Hour)
	tokens, err := access.NewTokens([]access.Token{
		{Name: "alice", SHA256: access.Hash(token)}, {Name: "old", SHA256: access.Hash("sluice_old"), Expires: &past},
	}, d.clock)
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]fleet.Spec{
		"gcp":   {Name: "gcp", VMs: []string{"a", "b", "c"}, RunnerID: 7, HasRunnerToken: true, MaxUnavailable: 1, Drain: fleet.DefaultDrainPolicy()},
		"other": {Name: "other", VMs: []string{"x"}, RunnerID: 8, HasRunnerToken: true, MaxUnavailable: 1, Drain: fleet.DefaultDrainPolicy()},
	}
	log := slog.New(slog.NewTextHandler(locked{d}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	pipelines := access.Options{
		Issuers: []access.Issuer{{URL: d.oidc.Issuer(), Audience: audience}, {URL: d.other.Issuer(), Audience: audience}},
		Rules: []access.Rule{
			{Issuer: d.other.Issuer(), Claims: []access.Condition{{Claim: "project_id", Any: texts("1")}}, Allow: []access.Action{"drain"}, Fleets: []string{"other"}},
			{
				Issuer: d.oidc.Issuer(), Claims: []access.Condition{{Claim: "project_id", Any: texts("42")}},
				Allow: []access.Action{"recreate"}, Fleets: []string{"gcp"}, VMs: texts("a", "b"), MaxCap: 30 * time.Minute,
			},
			{
				Issuer: d.oidc.Issuer(), Claims: []access.Condition{{Claim: "project_path", Any: append(texts("acme/app"), access.Pattern{Text: "acme/infra-*", Glob: true})}},
				Allow: []access.Action{"drain"}, Fleets: []string{"gcp"},
			},
			{
				Issuer: d.oidc.Issuer(), Claims: []access.Condition{{Claim: "project_id", Any: texts("43")}, {Claim: "ref_protected", Any: texts("true", "false")}},
				Allow: []access.Action{"drain"}, Fleets: []string{"gcp"},
			},
		},
		Store: d.store, Clock: d.clock, Log: log,
	}
	d.options = api.Options{
		Control: control.New(control.Options{Fleets: specs, Store: d.store, Waker: asleep{}, Clock: d.clock, Log: log}),
		Store:   d.store, Fleets: specs, Doctor: healthy{}, Tokens: tokens, Clock: d.clock, Version: "test", Log: log,
		Refused: func(reason access.Reason) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.refused[reason]++
		},
	}
	for _, f := range change {
		f(&pipelines, &d.options)
	}
	d.options.Pipelines = access.NewPipelines(pipelines)
	d.server = api.New(d.options)
	return d
}

// locked writes the log under the door's lock.
type locked struct{ *door }

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

func (d *door) logged() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.String()
}

func (d *door) counts() map[access.Reason]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.refused)
}

// claims are what GitLab writes (facts/gitlab.md section 6), changed.
func (d *door) claims(change map[string]any) jwt.MapClaims {
	now := d.clock.Now()
	c := jwt.MapClaims{
		"iss": d.oidc.Issuer(), "sub": "project_path:acme/deploy:ref_type:branch:ref:main", "aud": audience,
		"exp": now.Add(5 * time.Minute).Unix(), "nbf": now.Add(-5 * time.Second).Unix(), "iat": now.Unix(),
		"jti": "0a1b2c3d-" + now.Format(time.RFC3339Nano), "namespace_id": "9", "namespace_path": "acme",
		"project_id": "42", "project_path": "acme/deploy", "user_id": "5", "user_login": "alice", "user_email": "alice@example.com",
		"user_access_level": "maintainer", "pipeline_id": "100", "pipeline_source": "push", "job_id": "1000",
		"ref": "main", "ref_type": "branch", "ref_path": "refs/heads/main", "ref_protected": "true",
		"runner_id": 99, "runner_environment": "self-hosted", "sha": "5f3c1d0a9b7e4c2d8a6f0e1b3c5d7f9a1b2c3d4e",
		"project_visibility": "private", "ci_config_ref_uri": "gitlab.example.com/acme/deploy//.gitlab-ci.yml@refs/heads/main",
	}
	for name, value := range change {
		if value == nil {
			delete(c, name)
			continue
		}
		c[name] = value
	}
	return c
}

// token is an id_token as GitLab would sign it, with some claims changed; nil
// leaves one out.
func (d *door) token(change map[string]any) string {
	d.t.Helper()
	signed, err := d.oidc.Keypair.SignJWT(d.claims(change))
	if err != nil {
		d.t.Fatal(err)
	}
	return signed
}

// visit is one request and its answer.
type visit struct {
	method, path, auth, key, body, from string
}

// send sends it, from an address of its own unless it names one: too many
// failures of one address are slowed.
func (d *door) send(v visit) (int, string, http.Header) {
	d.t.Helper()
	if d.sent++; v.from == "" {
		v.from = fmt.Sprintf("10.0.%d.%d", d.sent/250, d.sent%250)
	}
	var body io.Reader = http.NoBody
	if v.body != "" {
		body = strings.NewReader(v.body)
	}
	request := httptest.NewRequestWithContext(d.t.Context(), v.method, v.path, body)
	request.Header.Set("Content-Type", "application/json")
	if v.auth != "" {
		request.Header.Set("Authorization", v.auth)
	}
	if v.key != "" {
		request.Header.Set("Idempotency-Key", v.key)
	}
	request.RemoteAddr = v.from + ":4711"
	answer := httptest.NewRecorder()
	d.server.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String(), answer.Header()
}

// asked sends a POST that a rule allows, with an id_token and a key.
func (d *door) asked(idToken, key string) (int, api.Asked, string) {
	d.t.Helper()
	code, body, _ := d.send(visit{http.MethodPost, "/api/v1/fleets/gcp/operations", "Bearer " + idToken, key, recreateA, ""})
	var a api.Asked
	if code < 300 {
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			d.t.Fatal(err)
		}
	}
	return code, a, body
}
