package events

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Follower reads the journal on from one event, at its own speed. It is used
// by one goroutine.
type Follower struct {
	tail       *Tail
	caller     string
	cursor     int64 // everything up to here was yielded, or is of others
	operations []string
	woken      chan struct{} // holds one token
}

// Close ends the following.
func (f *Follower) Close() { f.tail.remove(f) }

// Next yields the next events, oldest first, at most 500; none if there is
// none within wait. Errors: ErrEnded, those of ctx and of the log.
func (f *Follower) Next(ctx context.Context, wait time.Duration) ([]Entry, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-f.tail.ended:
			return nil, ErrEnded
		default:
		}
		entries, err := f.read(ctx)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
		select {
		case <-f.woken:
		case <-timer.C:
			return nil, nil
		case <-f.tail.ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// read takes what there is, from the window or, further back, the journal.
func (f *Follower) read(ctx context.Context) ([]Entry, error) {
	for {
		entries, seen, ok := f.recent()
		if ok {
			return entries, nil
		}
		facts, err := f.stored(ctx)
		if err != nil {
			return nil, err
		}
		if len(facts) > 0 {
			f.cursor = facts[len(facts)-1].ID
		}
		if len(facts) < piece { // all there was up to seen, which was in the journal before it was read
			f.cursor = max(f.cursor, seen)
		}
		if len(facts) > 0 {
			return f.render(facts)
		}
	}
}

// recent takes from the window; seen is the newest event of the journal that
// the window knows of.
func (f *Follower) recent() (entries []Entry, seen int64, ok bool) {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()
	now := f.tail.now // somebody looks: this one follows
	list, ok := now.after(f.cursor)
	if !ok {
		return nil, now.last, false
	}
	for i := range list {
		if len(entries) == piece {
			return entries, now.last, true
		}
		f.cursor = list[i].ID
		if len(f.operations) == 0 || slices.Contains(f.operations, list[i].operation) {
			entries = append(entries, list[i].Entry)
		}
	}
	return entries, now.last, true
}

// stored reads from the journal, at most a piece.
func (f *Follower) stored(ctx context.Context) ([]fleet.Fact, error) {
	return Read(ctx, f.tail.Log, f.cursor, f.operations, piece)
}

func (f *Follower) render(facts []fleet.Fact) ([]Entry, error) {
	entries := make([]Entry, len(facts))
	for i := range facts {
		k, err := f.tail.known(facts[i])
		if err != nil {
			return nil, err
		}
		entries[i] = k.Entry
	}
	return entries, nil
}

// wake has the follower look; more than one token says no more than one.
func (f *Follower) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// Read reads the journal after an event, oldest first, at most limit events:
// those of some operations, or all if none is named. Several operations are read
// one after another: what is written meanwhile is left for the next time, or an
// event of the first could be passed over for a later one of the second.
func Read(ctx context.Context, log Log, after int64, operations []string, limit int) ([]fleet.Fact, error) {
	if len(operations) == 0 {
		return log.Facts(ctx, after, "", limit)
	}
	last, err := log.LastFact(ctx)
	if err != nil {
		return nil, err
	}
	var all []fleet.Fact
	for _, operation := range operations {
		facts, err := log.Facts(ctx, after, operation, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, facts...)
	}
	all = slices.DeleteFunc(all, func(f fleet.Fact) bool { return f.ID > last })
	slices.SortFunc(all, func(a, b fleet.Fact) int { return cmp.Compare(a.ID, b.ID) })
	return all[:min(limit, len(all))], nil
}
