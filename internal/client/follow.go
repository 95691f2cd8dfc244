package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// How a follower bears with its server and what lies between.
const (
	patience    = 10 * time.Minute // default of Following.Patience
	firstPause  = 200 * time.Millisecond
	longestWait = 5 * time.Second // between two attempts
	firstPolls  = 30 * time.Second
	longestPoll = 10 * time.Minute // of polling before a stream is tried again
)

// Following says what to follow, and how patiently.
type Following struct {
	Operations []string // whole ids; none = everything that the caller may read
	After      int64    // events up to this id are old
	// Patience is how long the server may not answer; 0 = 10 min.
	Patience time.Duration
	// Trouble, if given, is told the error when the server is lost and could
	// not be reached again at once, and nil when it answers again.
	Trouble func(error)
}

// Follow yields the journal's events as they are written, each once, oldest
// first, until ctx ends or on returns an error, which it then returns. It
// holds a stream (server-sent events), goes on after the last event when that
// is lost, and polls while there is no stream to be had: some proxies hold
// answers back until they are whole. on is called by one goroutine at a time.
//
// Errors: on's own; CodeCanceled when ctx ended; CodeUnavailable when the
// server did not answer for as long as Patience says; at once what asking
// again would not mend (CodeInvalid, CodeUnauthorized, CodeForbidden,
// CodeNotFound, CodeConflict).
func (c *Client) Follow(ctx context.Context, what Following, on func(Event) error) error {
	if what.Patience <= 0 {
		what.Patience = patience
	}
	f := &follower{server: c, Following: what, on: on, pollFor: firstPolls, patience: time.NewTimer(what.Patience)}
	defer f.patience.Stop()
	err := f.run(ctx)
	if ctx.Err() != nil {
		return fleet.Errorf(fleet.CodeCanceled, "interrupted: %w", context.Cause(ctx))
	}
	if mine, ok := errors.AsType[*enough](err); ok {
		return mine.err
	}
	return err
}

// follower is one call of Follow.
type follower struct {
	server *Client
	Following
	on       func(Event) error
	patience *time.Timer // runs since the server last answered
	pause    time.Duration
	pollFor  time.Duration // how long to poll when there is no stream
	troubled bool
}

// enough is an error of the one who is told the events.
type enough struct{ err error }

func (e *enough) Error() string { return e.err.Error() }

// run streams, polls where there is no stream, and waits in between.
func (f *follower) run(ctx context.Context) error {
	for {
		flowed, err := f.stream(ctx)
		if flowed {
			f.pollFor = firstPolls
		}
		if !flowed && !final(err) {
			err = f.poll(ctx)
		}
		if ctx.Err() != nil || final(err) {
			return err
		}
		if err := f.await(ctx, err); err != nil {
			return err
		}
	}
}

// final says whether asking again would not help.
func final(err error) bool {
	if _, ok := errors.AsType[*enough](err); ok {
		return true
	}
	switch fleet.CodeOf(err) {
	case fleet.CodeInvalid, fleet.CodeForbidden, fleet.CodeNotFound, fleet.CodeConflict, CodeUnauthorized:
		return err != nil
	default:
		return false
	}
}

// answered notes a sign of life.
func (f *follower) answered() {
	f.patience.Reset(f.Patience)
	f.pause = 0
	if f.troubled {
		f.troubled = false
		f.trouble(nil)
	}
}

// await waits before the next attempt, longer each time that nothing came of
// one, and never twice the same: many follow one server that starts again.
func (f *follower) await(ctx context.Context, err error) error {
	if err != nil && f.pause > 0 && !f.troubled {
		f.troubled = true
		f.trouble(err)
	}
	f.pause = min(max(firstPause, 2*f.pause), longestWait)
	pause := f.pause
	if fleet.CodeOf(err) == fleet.CodeRateLimited {
		pause = longestWait
	}
	timer := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // nothing to guess
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.patience.C:
		return lost(err)
	case <-timer.C:
		return nil
	}
}

func (f *follower) trouble(err error) {
	if f.Trouble != nil {
		f.Trouble(err)
	}
}

// lost is the end of patience.
func lost(err error) error {
	if err == nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the stream of events was lost, again and again")
	}
	return err
}

// tell hands an event on, unless it is old.
func (f *follower) tell(e Event) error {
	if e.Id <= f.After {
		return nil
	}
	f.After = e.Id
	if err := f.on(e); err != nil {
		return &enough{err: err}
	}
	return nil
}

// poll asks for news in turns until it is time to try a stream again.
// Errors: those of Events.
func (f *follower) poll(ctx context.Context) error {
	enough := time.NewTimer(f.pollFor)
	defer enough.Stop()
	for {
		if err := f.turn(ctx); err != nil {
			return err
		}
		select {
		case <-enough.C:
			f.pollFor = min(2*f.pollFor, longestPoll)
			return nil
		default:
		}
	}
}

// pollWait is how long one turn waits for news on the server, in seconds, and
// pollLimit how long its answer may take.
const (
	pollWait  = 20
	pollLimit = (pollWait + 15) * time.Second
	pollPiece = 1000
)

func (f *follower) turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollLimit)
	defer cancel()
	params := f.params()
	params.Limit, params.Wait = new(int64(pollPiece)), new(int64(pollWait))
	news, err := f.server.Events(ctx, params)
	if err != nil {
		return err
	}
	f.answered()
	for _, e := range news.Events {
		if err := f.tell(e); err != nil {
			return err
		}
	}
	return nil
}

// params asks for what comes after the last event told.
func (f *follower) params() ListEventsParams {
	after := f.After
	params := ListEventsParams{After: &after}
	if len(f.Operations) > 0 {
		params.Operation = &f.Operations
	}
	return params
}
