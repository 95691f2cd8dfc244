package hooks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds of what bodies may take: GitLab sends at most 25 MB
// (facts/gitlab.md section 5.1), nearly all far less. Before its end nobody
// knows who sent a signed body. So what is bounded is the memory that is held,
// 164 MiB in all, and not how many wait: who sends nothing holds nothing, and
// any number of strangers that stand there keep nobody out.
const (
	bodyLimit = 25 << 20
	smallBody = 1 << 20
	mostHeld  = 64 << 20 // of the first MiB of all bodies together
	mostLarge = 4        // bodies of more than that
)

// How long a body may take, in parts: GitLab gives up after 10 s.
const (
	smallPatience = 3 * time.Second // for the first MiB
	largePatience = 4 * time.Second // for the rest of a larger one
	largeWait     = 5 * time.Second // for the turn of such a one
)

// bodies reads bodies, so much at once.
type bodies struct {
	held  atomic.Int64 // bytes
	large chan struct{}
}

func newBodies() *bodies { return &bodies{large: make(chan struct{}, mostLarge)} }

// read yields a whole body. Errors: *refusal.
func (b *bodies) read(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	if req.ContentLength > bodyLimit {
		return nil, tooLarge()
	}
	held := &holder{of: b}
	defer held.release()
	from := http.MaxBytesReader(w, req.Body, bodyLimit)
	stop := hurry(w, smallPatience)
	_, err := io.CopyN(held, from, smallBody)
	stop()
	switch {
	case errors.Is(err, io.EOF):
		return held.body.Bytes(), nil
	case err != nil:
		return nil, unread(err)
	}
	return b.readLarge(w, req, &held.body, from)
}

// readLarge reads on from where a body is a large one. Those who wait for their
// turn get it: whoever has it must be done soon.
func (b *bodies) readLarge(w http.ResponseWriter, req *http.Request, body *bytes.Buffer, from io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(req.Context(), largeWait)
	defer cancel()
	select {
	case b.large <- struct{}{}:
		defer func() { <-b.large }()
	case <-ctx.Done():
		return nil, busy("too many large deliveries at once")
	}
	stop := hurry(w, largePatience)
	defer stop()
	if _, err := body.ReadFrom(from); err != nil {
		return nil, unread(err)
	}
	return body.Bytes(), nil
}

// hurry has reads of a request's body fail after a while, until it is stopped.
func hurry(w http.ResponseWriter, patience time.Duration) (stop func()) {
	passed := make(chan struct{})
	timer := time.AfterFunc(patience, func() {
		defer close(passed)
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // a writer without one has no slow sender
	})
	return func() {
		if !timer.Stop() {
			<-passed // it must not hit the connection's next request
		}
	}
}

// holder is a body as far as it came; what is written to it is counted.
type holder struct {
	body bytes.Buffer
	of   *bodies
	n    int64
}

var errFull = errors.New("bodies hold all the memory that they may")

// Write implements io.Writer. Errors: errFull.
func (h *holder) Write(p []byte) (int, error) {
	n := int64(len(p))
	if h.of.held.Add(n) > mostHeld {
		h.of.held.Add(-n)
		return 0, errFull
	}
	h.n += n
	return h.body.Write(p)
}

func (h *holder) release() { h.of.held.Add(-h.n) }

func unread(err error) *refusal {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge()
	}
	if errors.Is(err, errFull) {
		return busy("too many deliveries at once")
	}
	return refuse(resultIncomplete, "the body did not come whole, or not within seconds", "send it again from the webhook's page in GitLab")
}

func tooLarge() *refusal {
	return refuse(resultTooLarge, "the body is larger than 25 MiB", "GitLab sends no such delivery")
}

func busy(why string) *refusal {
	return refuse(resultBusy, why, "send it again from the webhook's page in GitLab")
}
