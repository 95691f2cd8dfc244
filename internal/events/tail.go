package events

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const (
	lookEvery    = 100 * time.Millisecond // default of Options.Every
	window       = 2048                   // events that are kept, up to twice as many, for those who follow closely
	piece        = 500                    // events that are read at once
	maxFollowers = 4096
	maxEach      = 64 // followers of one caller: nobody takes everybody's place
)

// ErrEnded is what followers are told when the tail was closed.
var ErrEnded = errors.New("the following of events was ended")

// Log is the journal as it is read here.
type Log interface {
	// Facts lists the event log after an id, oldest first; operation "" = all.
	Facts(ctx context.Context, after int64, operation string, limit int) ([]fleet.Fact, error)
	// LastFact is the id of the newest; 0 = there is none.
	LastFact(ctx context.Context) (int64, error)
}

// Entry is an event as it goes out.
type Entry struct {
	ID   int64
	JSON []byte // one line, without its end; not to be changed
}

// Options are what a Tail is made of.
type Options struct {
	Log    Log
	Render func(fleet.Fact) ([]byte, error) // one line of JSON
	Every  time.Duration                    // how often the journal is looked at; 0 = 100 ms
	Logger *slog.Logger
}

// Tail is the end of the journal. While somebody follows, one goroutine looks
// for what is new; otherwise none. It is safe for concurrent use.
type Tail struct {
	Options
	ended chan struct{}
	once  sync.Once

	mu        sync.Mutex
	followers map[*Follower]bool
	everybody map[*Follower]bool            // those who follow all operations
	of        map[string]map[*Follower]bool // those who follow an operation
	callers   map[string]int                // how many follow for each of them
	now       *look                         // nil = nobody looks
}

// New makes a tail.
func New(o Options) *Tail {
	if o.Every <= 0 {
		o.Every = lookEvery
	}
	return &Tail{
		Options: o, ended: make(chan struct{}), followers: map[*Follower]bool{},
		everybody: map[*Follower]bool{}, of: map[string]map[*Follower]bool{},
		callers: map[string]int{},
	}
}

// Close ends everybody's following, for good.
func (t *Tail) Close() { t.once.Do(func() { close(t.ended) }) }

// Follow begins after an event, with operations, or with all if none is
// named. The follower must be closed. One caller has at most 64 of them; ""
// has no such limit.
//
// Errors: ErrEnded; CodeUnavailable (too many follow already);
// CodeRateLimited (too many for this caller); CodeConflict (the journal does
// not go as far as after); those of the log.
func (t *Tail) Follow(ctx context.Context, caller string, after int64, operations []string) (*Follower, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.ended:
		return nil, ErrEnded
	default:
	}
	if err := t.full(caller); err != nil {
		return nil, err
	}
	last, err := t.reaches(ctx, after)
	if err != nil {
		return nil, err
	}
	if after > last {
		return nil, fleet.Errorf(fleet.CodeConflict, "the journal ends at event %d, before event %d: it is not the one that was followed, or an older copy of it", last, after).
			WithHint("follow from the beginning: leave after and Last-Event-ID out")
	}
	if t.now == nil {
		t.now = t.start(last)
	}
	f := &Follower{tail: t, caller: caller, cursor: after, operations: operations, woken: make(chan struct{}, 1)}
	t.add(f)
	return f, nil
}

// full says why there is no place left.
func (t *Tail) full(caller string) error {
	switch {
	case len(t.followers) >= maxFollowers:
		return fleet.Errorf(fleet.CodeUnavailable, "%d follow the events already, the most there may be", maxFollowers).
			WithHint("poll with wait= instead, or try again later")
	case caller != "" && t.callers[caller] >= maxEach:
		return fleet.Errorf(fleet.CodeRateLimited, "%d follow the events for you already, the most there may be for one caller", maxEach).
			WithHint("end some of them; one stream can follow several operations; or poll with wait= instead")
	}
	return nil
}

// reaches says how far the journal goes; if that is beyond an event, how far
// it goes at least.
func (t *Tail) reaches(ctx context.Context, after int64) (int64, error) {
	if t.now != nil && after <= t.now.last {
		return t.now.last, nil
	}
	return t.Log.LastFact(ctx)
}

func (t *Tail) add(f *Follower) {
	t.followers[f] = true
	t.callers[f.caller]++
	if len(f.operations) == 0 {
		t.everybody[f] = true
	}
	for _, operation := range f.operations {
		if t.of[operation] == nil {
			t.of[operation] = map[*Follower]bool{}
		}
		t.of[operation][f] = true
	}
}

// remove forgets a follower, and ends the looking after the last of them.
func (t *Tail) remove(f *Follower) {
	t.mu.Lock()
	if t.followers[f] {
		t.leave(f.caller)
	}
	delete(t.followers, f)
	delete(t.everybody, f)
	for _, operation := range f.operations {
		delete(t.of[operation], f)
		if len(t.of[operation]) == 0 {
			delete(t.of, operation)
		}
	}
	var idle *look
	if len(t.followers) == 0 {
		idle, t.now = t.now, nil
	}
	t.mu.Unlock()
	if idle != nil {
		idle.end()
	}
}

// leave gives a caller's place back.
func (t *Tail) leave(caller string) {
	if t.callers[caller]--; t.callers[caller] <= 0 {
		delete(t.callers, caller)
	}
}
