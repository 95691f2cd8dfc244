package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// A stream says something at once, and then at least every 15 s. One that does
// not is held back by something in between, or dead.
const (
	helloLimit   = 10 * time.Second
	silenceLimit = 45 * time.Second
	// steadyAfter is how long a stream must last to be worth another.
	steadyAfter = 5 * time.Second
)

var errSilent = errors.New("the stream of events fell silent")

// stream follows one stream until it ends; flowed says whether streams work:
// an event came through it, or it lasted. Errors: enough, those of a refusal, CodeUnavailable.
func (f *follower) stream(ctx context.Context) (flowed bool, err error) {
	var lasted atomic.Bool
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(helloLimit, func() { cancel(errSilent) })
	defer silence.Stop()
	response, err := f.open(ctx)
	if err != nil {
		return false, f.because(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	var once sync.Once
	in := newFrames(&heard{in: response.Body, note: func() {
		silence.Reset(silenceLimit)
		once.Do(func() { time.AfterFunc(steadyAfter, func() { lasted.Store(true) }) })
		f.answered()
	}})
	for {
		data, err := in.next()
		flowed = flowed || lasted.Load()
		if errors.Is(err, io.EOF) {
			return flowed, nil // the server ends, or something in between has a limit
		}
		if err != nil {
			return flowed && !errors.Is(err, errFrameTooLong), f.because(ctx, err)
		}
		var e Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return false, fleet.Errorf(fleet.CodeUnavailable, "%s sent an event that is none of Sluice's: %w", f.server.where, err)
		}
		if err := f.tell(e); err != nil {
			return true, err
		}
		flowed = true
	}
}

// open asks for a stream. Errors: refusals, and CodeUnavailable for an answer
// that is no stream.
func (f *follower) open(ctx context.Context) (*http.Response, error) {
	params := f.params()
	response, err := f.server.streams.ListEvents(ctx, &params, func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Cache-Control", "no-store")
		return nil
	})
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")) // no type is not the right one
	if response.StatusCode == http.StatusOK && kind == "text/event-stream" {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	if err != nil {
		return nil, err
	}
	return nil, f.server.refused(response, body)
}

// because is the error to tell: why the stream was ended, if it was by us.
func (f *follower) because(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*fleet.Error](err); ok {
		return err
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		err = errSilent
	}
	return f.server.unreachable(err)
}

// heard notes whatever comes through a stream, comments too.
type heard struct {
	in   io.Reader
	note func()
}

// Read implements io.Reader.
func (h *heard) Read(p []byte) (int, error) {
	n, err := h.in.Read(p)
	if n > 0 {
		h.note()
	}
	return n, err
}
