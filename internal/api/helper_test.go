package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/doctor"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

const token = "sluice_test"

type real struct{}

func (real) Now() time.Time { return time.Now() }

type asleep struct{}

func (asleep) Wake(context.Context, string) error { return nil }

// world is the API over a real store; no engine moves anything.
type world struct {
	*client.Client
	url   string
	store *store.Store
}

type healthy struct{}

func (healthy) Examine(_ context.Context, fleetName string, vms []string) (doctor.Report, error) {
	return doctor.Report{Fleet: fleetName, Examined: append([]string{}, vms...), Findings: []doctor.Finding{
		{Severity: doctor.SeverityError, VM: "a", Check: "sudo", What: "refused", Mend: "install it"},
	}}, nil
}

func setup(t *testing.T) *world {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "test.db"), Clock: real{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	log := slog.New(slog.DiscardHandler)
	specs := map[string]fleet.Spec{
		"gcp": {Name: "gcp", VMs: []string{"a", "b"}, HasRunnerToken: true, MaxUnavailable: 1, Drain: fleet.DefaultDrainPolicy()},
	}
	past := time.Now().Add(-time.Hour)
	tokens, err := access.NewTokens([]access.Token{
		{Name: "alice", SHA256: access.Hash(token)}, {Name: "old", SHA256: access.Hash("sluice_old"), Expires: &past},
	}, real{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Options{
		Control: control.New(control.Options{Fleets: specs, Store: s, Waker: asleep{}, Clock: real{}, Log: log}),
		Store:   s, Fleets: specs, Doctor: healthy{}, Tokens: tokens, Clock: real{}, Version: "test", Log: log,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "sluice_up 1\n") }),
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{URL: server.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return &world{Client: c, url: server.URL, store: s}
}

func (w *world) ask(t *testing.T, vms ...string) *client.Asked {
	t.Helper()
	asked, err := w.Ask(t.Context(), "gcp", "", client.AskBody{Kind: client.AskBodyKindRecreate, Vms: vms})
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

// raw sends a request as it is and yields the answer with its body.
func (w *world) raw(t *testing.T, method, path, auth string, body io.Reader) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, w.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if auth != "" {
		request.Header.Set("Authorization", auth)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}
