package main

import (
	"context"
	"net/http"
	"sync"
)

// trace is a job's output: written by its steps, sent in patches.
type trace struct {
	mu   sync.Mutex
	text []byte
	sent int
}

// Write appends output. It never fails.
func (t *trace) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	return len(p), nil
}

// pending says whether there is output that GitLab does not have.
func (t *trace) pending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent < len(t.text)
}

// flush sends what is pending.
func (t *trace) flush(ctx context.Context, c *coordinator, j *job) (answer, error) {
	t.mu.Lock()
	chunk, offset := t.text[t.sent:len(t.text):len(t.text)], t.sent
	t.mu.Unlock()
	a, err := c.patchTrace(ctx, j, chunk, offset)
	if err != nil {
		return a, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch a.Code {
	case http.StatusAccepted:
		t.sent = offset + len(chunk)
	case http.StatusRequestedRangeNotSatisfiable:
		// An earlier patch arrived and its answer was lost: go on where GitLab is.
		t.sent = min(a.TraceEnd, len(t.text))
	}
	return a, nil
}
