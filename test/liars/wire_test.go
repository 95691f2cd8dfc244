package liars

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// wire carries the client's requests to a GitLab in memory and lets a test
// meddle with the answers.
type wire struct {
	lab    *simgitlab.Server
	before func() // runs before each request and whenever time has passed: the runners' part of the world

	mu     sync.Mutex
	counts map[string]int
	served int                                                // requests that reached the server
	hosts  map[string]int                                     // whom it was sent to
	meddle func(*http.Request, *http.Response) *http.Response // nil: nothing is changed
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.before()
	w.hosts[req.URL.Host]++
	w.served++
	meddle := w.meddle
	w.mu.Unlock()
	resp, err := w.send(req)
	if err != nil || meddle == nil {
		return resp, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return meddle(req, resp), nil
}

// pass lets the runners do what they did since.
func (w *wire) pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before()
}

// send has the server answer, and ends as a connection would.
func (w *wire) send(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		req = req.Clone(req.Context())
		req.Body = http.NoBody
	}
	rec := &recorder{ResponseRecorder: httptest.NewRecorder()}
	w.lab.ServeHTTP(rec, req)
	switch {
	case req.Context().Err() != nil:
		return nil, req.Context().Err()
	case rec.dropped:
		return nil, io.ErrUnexpectedEOF
	}
	resp := rec.Result()
	resp.Request = req
	return resp, nil
}

// seen counts an attempt of the client, as its metrics do.
func (w *wire) seen(route, _ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[route]++
}

// reached is how many requests have come to GitLab.
func (w *wire) reached() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.served
}

// recorder is an answer whose connection can be closed instead.
type recorder struct {
	*httptest.ResponseRecorder
	dropped bool
}

// Hijack implements http.Hijacker as far as closing goes.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.dropped = true
	return nil, nil, errors.New("closed")
}
