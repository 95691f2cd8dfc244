package client

import (
	"context"
	"io"
	"net/http"
	"sync"

	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// inProcess hands requests to a handler in this process, so that a command
// alone takes the very path that it takes beside a server. The caller is the
// user who runs it. An answer can be read while it is still being written.
type inProcess struct {
	handler http.Handler
	by      fleet.Actor
}

// RoundTrip implements http.RoundTripper. The answer's body must be closed:
// that ends the handler's context and waits for the handler.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(api.WithCaller(r.Context(), t.by))
	request := r.Clone(ctx)
	if request.Body == nil {
		request.Body = http.NoBody
	}
	request.RequestURI = request.URL.RequestURI()
	out, in := io.Pipe()
	answer := &answer{header: http.Header{}, body: in, begun: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = in.Close() }() // never fails (io.PipeWriter)
		t.handler.ServeHTTP(answer, request)
		answer.begin(http.StatusOK)
	}()
	<-answer.begun
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Header: answer.sent,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Body: &living{PipeReader: out, cancel: cancel, ended: ended},
	}, nil
}

// living is the body of an answer whose handler may still be at work.
type living struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  <-chan struct{}
}

// Close implements io.Closer.
func (l *living) Close() error {
	l.cancel()
	err := l.PipeReader.Close()
	<-l.ended
	return err
}

// answer is a response that is still being written.
type answer struct {
	header http.Header
	sent   http.Header // as they were when the answer began
	status int
	body   *io.PipeWriter
	once   sync.Once
	begun  chan struct{}
}

func (a *answer) begin(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.begin(status) }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.body.Write(p)
}

// Flush implements http.Flusher: whatever was written is with the reader.
func (a *answer) Flush() { a.begin(http.StatusOK) }
