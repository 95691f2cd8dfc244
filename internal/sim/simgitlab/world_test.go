package simgitlab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// world is an instance on loopback with GitLab's own client in front of it.
type world struct {
	*simgitlab.Server
	t   *testing.T
	url string
}

func newWorld(t *testing.T, cfg simgitlab.Config) *world {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := simgitlab.New(cfg)
	hs := httptest.NewServer(s)
	t.Cleanup(hs.Close)
	return &world{Server: s, t: t, url: hs.URL}
}

func (w *world) client(token string) *gitlab.Client {
	w.t.Helper()
	c, err := gitlab.NewClient(token, gitlab.WithBaseURL(w.url), gitlab.WithoutRetries())
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// call sends a JSON body and returns status, headers and body.
func (w *world) call(ctx context.Context, method, path string, body any, headers ...string) (int, http.Header, []byte) {
	w.t.Helper()
	var rd io.Reader = http.NoBody
	switch b := body.(type) {
	case nil:
	case string:
		rd = bytes.NewBufferString(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			w.t.Fatal(err)
		}
		rd = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, rd)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, raw
}

// request polls for a job as a VM's runner; nil if there was none.
func (w *world) request(systemID string) *simgitlab.JobPayload {
	w.t.Helper()
	code, _, body := w.poll(w.t.Context(), systemID, "")
	if code != http.StatusCreated {
		return nil
	}
	var p simgitlab.JobPayload
	if err := json.Unmarshal(body, &p); err != nil {
		w.t.Fatal(err)
	}
	return &p
}

func (w *world) poll(ctx context.Context, systemID, last string) (int, http.Header, []byte) {
	return w.call(ctx, http.MethodPost, "/api/v4/jobs/request", map[string]any{
		"token": simgitlab.DefaultRunnerToken, "system_id": systemID, "last_update": last,
		"info": map[string]any{"name": "gitlab-runner", "version": "19.4.0", "features": map[string]any{"cancel_gracefully": true}},
	})
}

func (w *world) take(systemID string, spec simgitlab.JobSpec) *simgitlab.JobPayload {
	w.t.Helper()
	id := w.Enqueue(spec)
	p := w.request(systemID)
	if p == nil || p.ID != id {
		w.t.Fatalf("runner %s got %+v, want job %d", systemID, p, id)
	}
	return p
}

func (w *world) trace(p *simgitlab.JobPayload, text string) (int, http.Header) {
	w.t.Helper()
	code, h, _ := w.call(w.t.Context(), http.MethodPatch, jobPath(p)+"/trace", text,
		"Job-Token", p.Token, "Content-Range", "0-"+itoa(len(text)-1))
	return code, h
}

func (w *world) update(p *simgitlab.JobPayload, state, reason string) (int, http.Header) {
	w.t.Helper()
	code, h, _ := w.call(w.t.Context(), http.MethodPut, jobPath(p),
		map[string]string{"token": p.Token, "state": state, "failure_reason": reason})
	return code, h
}

// eventually polls for a condition; it fails the test after five seconds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never came: %s", what)
		}
	}
}
