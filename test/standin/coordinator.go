package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// coordinator speaks GitLab's runner protocol for one [[runners]] entry.
type coordinator struct {
	url      string
	token    string
	systemID string
	executor string
	client   *http.Client

	lastUpdate string // GitLab's cursor for long polls
}

// job is what GitLab hands over for a job, as far as it is used.
type job struct {
	ID      int64  `json:"id"`
	Token   string `json:"token"`
	JobInfo struct {
		Name      string `json:"name"`
		ProjectID int64  `json:"project_id"`
	} `json:"job_info"`
	Variables []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"variables"`
	Steps []step `json:"steps"`
}

// step is one part of a job: "script", "after_script".
type step struct {
	Name   string   `json:"name"`
	Script []string `json:"script"`
	When   string   `json:"when"`
}

// result is how a job ended.
type result struct {
	State         string `json:"state"` // running (a sign of life), success, failed
	FailureReason string `json:"failure_reason,omitempty"`
	ExitCode      int    `json:"exit_code,omitempty"`
}

// answer is GitLab's reply to an update.
type answer struct {
	Code      int
	JobStatus string // header Job-Status: canceling, canceled, failed, …
	TraceEnd  int    // header Range: how much of the trace GitLab has
}

// jobEnded says whether GitLab told that the job is over without us.
func (a answer) jobEnded() bool {
	return a.Code == http.StatusForbidden || a.Code == http.StatusNotFound ||
		a.JobStatus == "canceled" || a.JobStatus == "failed"
}

func (c *coordinator) identity() map[string]any {
	return map[string]any{
		"token": c.token, "system_id": c.systemID,
		"info": map[string]any{
			"name": "gitlab-runner", "version": version, "revision": "standin",
			"platform": runtime.GOOS, "architecture": runtime.GOARCH, "executor": c.executor,
			"features": map[string]any{
				"trace_reset": true, "trace_checksum": true, "cancelable": true, "cancel_gracefully": true,
				"return_exit_code": true,
			},
		},
	}
}

// requestJob asks for a job; the server may hold the request. It yields nil if there is
// none. An ended ctx cuts the open request: what the server assigned meanwhile is lost.
func (c *coordinator) requestJob(ctx context.Context) (*job, error) {
	body := c.identity()
	body["last_update"] = c.lastUpdate
	resp, err := c.send(ctx, http.MethodPost, "/jobs/request", jsonBody(body), nil)
	if err != nil {
		return nil, err
	}
	defer closeBody(resp)
	switch resp.StatusCode {
	case http.StatusCreated:
		var assigned job
		if err := json.NewDecoder(resp.Body).Decode(&assigned); err != nil {
			return nil, fmt.Errorf("read the assigned job: %w", err)
		}
		return &assigned, nil
	case http.StatusNoContent:
		c.lastUpdate = resp.Header.Get("X-GitLab-Last-Update")
		return nil, nil
	default:
		return nil, fmt.Errorf("jobs/request: %s", resp.Status)
	}
}

// update reports a job's state.
func (c *coordinator) update(ctx context.Context, j *job, r result) (answer, error) {
	body := c.identity()
	body["token"] = j.Token
	body["state"] = r.State
	if r.FailureReason != "" {
		body["failure_reason"] = r.FailureReason
		body["exit_code"] = r.ExitCode
	}
	return c.tell(ctx, http.MethodPut, jobPath(j), jsonBody(body), nil)
}

// patchTrace appends chunk, which begins at offset, to the job's trace.
func (c *coordinator) patchTrace(ctx context.Context, j *job, chunk []byte, offset int) (answer, error) {
	header := http.Header{
		"Job-Token":     {j.Token},
		"Content-Range": {fmt.Sprintf("%d-%d", offset, offset+len(chunk)-1)},
		"Content-Type":  {"text/plain"},
	}
	return c.tell(ctx, http.MethodPatch, jobPath(j)+"/trace", bytes.NewReader(chunk), header)
}

func jobPath(j *job) string { return "/jobs/" + strconv.FormatInt(j.ID, 10) }

// tell sends an update and reads the reply's headers.
func (c *coordinator) tell(ctx context.Context, method, path string, body io.Reader, header http.Header) (answer, error) {
	resp, err := c.send(ctx, method, path, body, header)
	if err != nil {
		return answer{}, err
	}
	defer closeBody(resp)
	_, end, _ := strings.Cut(resp.Header.Get("Range"), "-")
	traceEnd, _ := strconv.Atoi(end) // absent where no trace is spoken of
	return answer{Code: resp.StatusCode, JobStatus: resp.Header.Get("Job-Status"), TraceEnd: traceEnd}, nil
}

func (c *coordinator) send(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.url, "/")+"/api/v4"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for key, values := range header {
		req.Header[key] = values
	}
	req.Header.Set("User-Agent", "gitlab-runner "+version+" (standin)")
	return c.client.Do(req)
}

func jsonBody(value any) io.Reader {
	content, _ := json.Marshal(value) // maps of plain values cannot fail
	return bytes.NewReader(content)
}

func closeBody(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close()
}

// requestTimeout bounds every request but the long poll.
const requestTimeout = 10 * time.Second
