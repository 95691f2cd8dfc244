package client

import (
	"bytes"
	"io"
	"net/http"

	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// inProcess hands requests to a handler in this process, so that a command
// alone takes the very path that it takes beside a server. The caller is the
// user who runs it.
type inProcess struct {
	handler http.Handler
	by      fleet.Actor
}

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	request := r.Clone(api.WithCaller(r.Context(), t.by))
	if request.Body == nil {
		request.Body = http.NoBody
	}
	request.RequestURI = request.URL.RequestURI()
	answer := &answer{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(answer, request)
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Header: answer.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		ContentLength: int64(answer.body.Len()), Body: io.NopCloser(&answer.body),
	}, nil
}

// answer is a response that is still being written.
type answer struct {
	header  http.Header
	body    bytes.Buffer
	status  int
	started bool
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if !a.started {
		a.status, a.started = status, true
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.started = true
	return a.body.Write(p)
}
