package events

import (
	"context"
	"sort"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// look is one time of looking for what is new: from the first follower's
// coming to the last one's going. Its numbers are the tail's to guard.
type look struct {
	floor  int64   // every event after this one, up to last, is in recent
	last   int64   // the newest event that was seen
	recent []known // oldest first
	cancel context.CancelFunc
	done   chan struct{}
}

// known is an event of the window.
type known struct {
	Entry
	operation string
}

// start begins to look for what comes after an event.
func (t *Tail) start(last int64) *look {
	ctx, cancel := context.WithCancel(context.Background())
	l := &look{floor: last, last: last, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		t.run(ctx, l, last)
	}()
	return l
}

// end ends the looking and waits for it.
func (l *look) end() {
	l.cancel()
	<-l.done
}

// run looks until ctx ends. A journal that cannot be read is said once.
func (t *Tail) run(ctx context.Context, l *look, last int64) {
	ticker := time.NewTicker(t.Every)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		facts, err := t.news(ctx, last)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			t.Logger.ErrorContext(ctx, "the journal cannot be read for those who follow it; trying on", "error", err)
		case err == nil && failing:
			t.Logger.InfoContext(ctx, "the journal can be read again")
		}
		failing = err != nil
		if len(facts) > 0 {
			last = facts[len(facts)-1].ID
			t.keep(l, facts)
		}
	}
}

// news reads what came after an event, rendered.
func (t *Tail) news(ctx context.Context, after int64) ([]known, error) {
	facts, err := t.Log.Facts(ctx, after, "", piece)
	if err != nil {
		return nil, err
	}
	list := make([]known, len(facts))
	for i, fact := range facts {
		if list[i], err = t.known(fact); err != nil {
			return list[:i], err
		}
	}
	return list, nil
}

func (t *Tail) known(fact fleet.Fact) (known, error) {
	body, err := t.Render(fact)
	return known{Entry: Entry{ID: fact.ID, JSON: body}, operation: fact.Operation}, err
}

// keep takes what is new into the window and wakes those whom it concerns.
func (t *Tail) keep(l *look, facts []known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.recent = append(l.recent, facts...)
	l.last = facts[len(facts)-1].ID
	if over := len(l.recent) - window; over > window {
		l.floor = l.recent[over-1].ID
		l.recent = append([]known(nil), l.recent[over:]...)
	}
	for i := range facts {
		for f := range t.of[facts[i].operation] {
			f.wake()
		}
	}
	for f := range t.everybody {
		f.wake()
	}
}

// after yields what the window has after an event; false if it does not go
// back that far.
func (l *look) after(id int64) ([]known, bool) {
	if id < l.floor {
		return nil, false
	}
	return l.recent[sort.Search(len(l.recent), func(i int) bool { return l.recent[i].ID > id }):], true
}
