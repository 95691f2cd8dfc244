package simrunner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// payload is what a runner needs of a job that it was given.
type payload struct {
	ID      int64  `json:"id"`
	Token   string `json:"token"`
	JobInfo struct {
		ProjectID int64 `json:"project_id"`
	} `json:"job_info"`
	Variables []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"variables"`
	Steps []struct {
		Name   string   `json:"name"`
		Script []string `json:"script"`
	} `json:"steps"`
	Features struct {
		FailureReasons []string `json:"failure_reasons"`
	} `json:"features"`
}

// request asks for a job; nil without error means that there is none.
func (r *Runner) request(ctx context.Context, last string) (*payload, string, error) {
	body := map[string]any{
		"token": r.o.Token, "system_id": r.o.SystemID, "last_update": last,
		"info": map[string]any{
			"name": "gitlab-runner", "version": "19.3.0", "revision": "sim", "platform": "linux", "architecture": "amd64",
			"executor": "custom",
			"features": map[string]any{"cancel_gracefully": true, "two_phase_job_commit": true, "variables": true},
		},
	}
	resp, err := r.call(ctx, http.MethodPost, "/jobs/request", body, nil)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusCreated:
		var p payload
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
			return nil, "", fmt.Errorf("the job was not received: %w", err)
		}
		return &p, "", nil
	case http.StatusNoContent:
		return nil, resp.Header.Get("X-GitLab-Last-Update"), nil
	}
	return nil, "", fmt.Errorf("GitLab answered %s", resp.Status)
}

// call sends one request; bodies other than []byte are sent as JSON.
func (r *Runner) call(ctx context.Context, method, path string, body any, header map[string]string) (*http.Response, error) {
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, r.o.URL+"/api/v4"+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "gitlab-runner 19.3.0 (sim)")
	if !ok {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	return r.client.Do(req)
}

var errRefused = errors.New("GitLab does not know the job as ours any more")

// update is PUT /jobs/:id; it yields Job-Status.
func (r *Runner) update(ctx context.Context, p *payload, state, reason string) (string, error) {
	body := map[string]any{"token": p.Token, "state": state}
	if reason != "" {
		body["failure_reason"] = reason
	}
	resp, err := r.call(ctx, http.MethodPut, fmt.Sprintf("/jobs/%d", p.ID), body, nil)
	return outcome(resp, err)
}

// patch is PATCH /jobs/:id/trace; it yields Job-Status and, where GitLab does
// not accept the range, how many bytes it has; else -1.
func (r *Runner) patch(ctx context.Context, p *payload, start int, text []byte) (string, int, error) {
	resp, err := r.call(ctx, http.MethodPatch, fmt.Sprintf("/jobs/%d/trace", p.ID), text, map[string]string{
		"Job-Token": p.Token, "Content-Type": "text/plain",
		"Content-Range": fmt.Sprintf("%d-%d", start, start+len(text)-1),
	})
	has := -1
	if err == nil && resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		_, end, _ := strings.Cut(resp.Header.Get("Range"), "-")
		if n, bad := strconv.Atoi(end); bad == nil {
			has = n
		}
	}
	status, err := outcome(resp, err)
	return status, has, err
}

func outcome(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body) // the connection is kept
	switch {
	case resp.StatusCode < http.StatusMultipleChoices:
		return resp.Header.Get("Job-Status"), nil
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusNotFound:
		return resp.Header.Get("Job-Status"), errRefused
	}
	return "", fmt.Errorf("GitLab answered %s", resp.Status)
}

// finalTries is job_status_final_update_retry_limit.
const finalTries = 10

// final delivers a job's result: ten tries, one second doubling between them.
func (r *Runner) final(p *payload, state, reason string) {
	pause := time.Second
	for try := 1; ; try++ {
		_, err := r.update(r.life, p, state, reason)
		if err == nil || errors.Is(err, errRefused) || r.life.Err() != nil {
			return
		}
		r.o.Log(fmt.Sprintf("Updating job %d... failed: %v", p.ID, err))
		if try == finalTries || !simclock.Sleep(r.life, r.o.Clock, pause) {
			return
		}
		pause *= 2
	}
}
