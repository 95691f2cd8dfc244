package gitlab_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// world is a fake GitLab, an adapter in front of it, and what was observed.
type world struct {
	*simgitlab.Server
	t     *testing.T
	url   string
	in    *gitlab.Instance
	entry *gitlab.Entry

	mu       sync.Mutex
	observed []string
}

func (w *world) observe(route, code string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.observed = append(w.observed, route+" "+code)
}

// newWorld starts an instance; change may alter both configurations.
func newWorld(t *testing.T, change func(*simgitlab.Config, *gitlab.Config)) *world {
	t.Helper()
	w := &world{t: t}
	sc := simgitlab.Config{Now: time.Now}
	gc := gitlab.Config{
		Token: simgitlab.DefaultUserToken, Now: time.Now, Timeout: 5 * time.Second,
		Fresh: time.Nanosecond, Rate: 10_000,
		Observe: w.observe,
	}
	if change != nil {
		change(&sc, &gc)
	}
	w.Server = simgitlab.New(sc)
	hs := httptest.NewServer(w.Server)
	t.Cleanup(hs.Close)
	w.url = hs.URL + sc.BasePath
	gc.URL = w.url
	in, err := gitlab.New(gc)
	if err != nil {
		t.Fatal(err)
	}
	w.in, w.entry = in, in.Entry(simgitlab.DefaultRunnerID)
	return w
}

func (w *world) codes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.observed...)
}

// post sends JSON as a runner would, past the adapter.
func (w *world) post(method, path string, body any) (int, []byte) {
	w.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+"/api/v4"+path, bytes.NewReader(raw))
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, out
}

// join makes the manager, as a runner's first poll does.
func (w *world) join(systemID string) {
	w.t.Helper()
	if code, body := w.post(http.MethodPost, "/jobs/request", map[string]string{
		"token": simgitlab.DefaultRunnerToken, "system_id": systemID,
	}); code != http.StatusNoContent {
		w.t.Fatalf("join = %d %s", code, body)
	}
}

// start lets a VM take a job.
func (w *world) start(systemID string, spec simgitlab.JobSpec) simgitlab.JobPayload {
	w.t.Helper()
	w.Enqueue(spec)
	code, body := w.post(http.MethodPost, "/jobs/request", map[string]string{
		"token": simgitlab.DefaultRunnerToken, "system_id": systemID,
	})
	var p simgitlab.JobPayload
	if err := json.Unmarshal(body, &p); err != nil || code != http.StatusCreated {
		w.t.Fatalf("take = %d %s", code, body)
	}
	return p
}

func (w *world) succeed(p simgitlab.JobPayload) {
	w.t.Helper()
	if code, body := w.post(http.MethodPut, fmt.Sprintf("/jobs/%d", p.ID), map[string]string{"token": p.Token, "state": "success"}); code != http.StatusOK {
		w.t.Fatalf("final update = %d %s", code, body)
	}
}

func about(systemID string) fleet.Subject {
	return fleet.Subject{
		Ref:         fleet.Ref{Fleet: "f", VM: "vm-1"},
		Incarnation: fleet.Incarnation{SystemID: systemID},
	}
}

func (w *world) read(systemID string) *fleet.GitLabReading {
	w.t.Helper()
	return w.entry.Read(w.t.Context(), about(systemID), time.Now())
}

// mustSay fails unless text has every part and none of the tokens.
func mustSay(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
	for _, secret := range []string{simgitlab.DefaultRunnerToken, simgitlab.DefaultUserToken, simgitlab.DefaultWriteToken} {
		if strings.Contains(text, secret) {
			t.Errorf("%q holds a token", text)
		}
	}
}
