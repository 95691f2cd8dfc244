package events_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/events"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// journal is an event log in memory.
type journal struct {
	mu     sync.Mutex
	facts  []fleet.Fact
	reads  int
	broken error
}

func (j *journal) Facts(_ context.Context, after int64, operation string, limit int) ([]fleet.Fact, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reads++
	var list []fleet.Fact
	for _, f := range j.facts {
		if f.ID > after && (operation == "" || f.Operation == operation) && len(list) < limit {
			list = append(list, f)
		}
	}
	return list, j.broken
}

func (j *journal) LastFact(context.Context) (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reads++
	return int64(len(j.facts)), j.broken
}

func (j *journal) write(operations ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, operation := range operations {
		j.facts = append(j.facts, fleet.Fact{ID: int64(len(j.facts)) + 1, Operation: operation})
	}
}

func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = err
}

// of are the ids of an operation's events after one; "" = all.
func (j *journal) of(after int64, operations ...string) []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []int64
	for _, f := range j.facts {
		if f.ID > after && (len(operations) == 0 || slices.Contains(operations, f.Operation)) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// pass lets the time of a bubble pass.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest: no real time passes

func tail(j *journal) *events.Tail {
	return events.New(events.Options{
		Log: j, Logger: slog.New(slog.DiscardHandler),
		Render: func(f fleet.Fact) ([]byte, error) { return fmt.Appendf(nil, "%d of %s", f.ID, f.Operation), nil },
	})
}

func follow(t *testing.T, tail *events.Tail, after int64, operations ...string) *events.Follower {
	t.Helper()
	f, err := tail.Follow(t.Context(), "", after, operations)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// ids reads what comes within wait.
func ids(t *testing.T, f *events.Follower, wait time.Duration) (list []int64) {
	t.Helper()
	for {
		entries, err := f.Next(t.Context(), wait)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			return list
		}
		for _, e := range entries {
			list = append(list, e.ID)
		}
	}
}

func TestEveryFollowerGetsItsEventsOnceAndInOrder(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			name := func() string { return fmt.Sprint("op-", random.IntN(6)) }
			j := &journal{}
			for range random.IntN(3000) {
				j.write(name())
			}
			tail := tail(j)
			var group sync.WaitGroup
			stop, done := context.WithCancel(t.Context())
			for range 12 {
				after := random.Int64N(int64(len(j.facts)) + 1)
				var operations []string
				for range random.IntN(4) {
					operations = append(operations, name())
				}
				slices.Sort(operations)
				operations = slices.Compact(operations)
				slowness := time.Duration(random.IntN(3000)) * time.Millisecond
				group.Go(func() {
					f := follow(t, tail, after, operations...)
					defer f.Close()
					var got []int64
					for {
						over := stop.Err() != nil // before asking: nothing is written after it
						entries, err := f.Next(t.Context(), time.Second)
						if err != nil {
							t.Error(err)
							return
						}
						for _, e := range entries {
							got = append(got, e.ID)
						}
						if len(entries) == 0 && over {
							break
						}
						pass(slowness)
					}
					if want := j.of(after, operations...); !slices.Equal(got, want) {
						t.Errorf("seed %d: after %d of %v: %d events, want %d: %v", seed, after, operations, len(got), len(want), got)
					}
				})
			}
			for range 200 { // more than the window holds, in bursts
				for range random.IntN(80) {
					j.write(name())
				}
				pass(time.Duration(random.IntN(300)) * time.Millisecond)
			}
			done()
			group.Wait()
		})
	}
}

// between is a journal in which something is written between two readings.
type between struct {
	*journal
	then func()
}

func (b *between) Facts(ctx context.Context, after int64, operation string, limit int) ([]fleet.Fact, error) {
	facts, err := b.journal.Facts(ctx, after, operation, limit)
	if then := b.then; then != nil {
		b.then = nil
		then()
	}
	return facts, err
}

// Event 2 of a is written when a was read, event 3 of b before b is: whoever is
// told 3 first never learns of 2.
func TestAnEventWrittenBetweenTheReadingsOfTwoOperationsIsNotPassedOver(t *testing.T) {
	j := &journal{}
	j.write("b")
	b := &between{j, func() { j.write("a", "b") }}
	first, err := events.Read(t.Context(), b, 0, []string{"a", "b"}, 10)
	if err != nil || len(first) != 1 || first[0].ID != 1 {
		t.Fatalf("%v, %v", first, err)
	}
	second, err := events.Read(t.Context(), b, 1, []string{"a", "b"}, 10)
	if err != nil || len(second) != 2 || second[0].ID != 2 {
		t.Errorf("%v, %v", second, err)
	}
}

func TestOneLookServesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		j.write("a", "b")
		tail := tail(j)
		followers := make([]*events.Follower, 500)
		for i := range followers {
			followers[i] = follow(t, tail, 2, "a")
		}
		before := j.reads
		j.write("a", "b", "a")
		for _, f := range followers {
			if got := ids(t, f, time.Millisecond*150); !slices.Equal(got, []int64{3, 5}) {
				t.Fatalf("got %v", got)
			}
			f.Close()
		}
		synctest.Wait()
		// One look every 100 ms, however many follow.
		if looks, most := j.reads-before, 500*150/100+10; looks > most {
			t.Errorf("%d looks, want at most %d", looks, most)
		}
		before = j.reads
		pass(time.Hour)
		if j.reads != before {
			t.Errorf("%d looks while nobody follows", j.reads-before)
		}
	})
}

func TestWhoFollowsOneOperationIsNotWokenByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		tail := tail(j)
		f := follow(t, tail, 0, "a")
		defer f.Close()
		j.write("b", "b")
		began := time.Now()
		if got := ids(t, f, time.Minute); got != nil || time.Since(began) != time.Minute {
			t.Errorf("got %v after %s", got, time.Since(began))
		}
	})
}

func TestClosingEndsEverybodysFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tail := tail(&journal{})
		f := follow(t, tail, 0)
		defer f.Close()
		time.AfterFunc(time.Second, tail.Close)
		if _, err := f.Next(t.Context(), time.Hour); !errors.Is(err, events.ErrEnded) {
			t.Errorf("got %v", err)
		}
		if _, err := tail.Follow(t.Context(), "", 0, nil); !errors.Is(err, events.ErrEnded) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestAFollowerEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, tail(&journal{}), 0)
		defer f.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.Next(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAJournalThatCannotBeReadForAWhileLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		f := follow(t, tail(j), 0)
		defer f.Close()
		j.fail(errors.New("the disk is away"))
		j.write("a", "a")
		if got := ids(t, f, time.Minute); got != nil {
			t.Errorf("got %v from a broken journal", got)
		}
		j.fail(nil)
		if got := ids(t, f, time.Second); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestAnIdThatTheJournalHasNotReachedIsRefused(t *testing.T) {
	j := &journal{}
	j.write("a", "a")
	if _, err := tail(j).Follow(t.Context(), "", 3, nil); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("got %v", err)
	}
	synctest.Test(t, func(t *testing.T) { // written since the last look: no reason to refuse
		tail := tail(j)
		first := follow(t, tail, 2)
		defer first.Close()
		j.write("a")
		second := follow(t, tail, 3)
		defer second.Close()
		j.write("a")
		if got := ids(t, second, time.Second); !slices.Equal(got, []int64{4}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestTooManyFollowersAreRefused(t *testing.T) {
	tail := tail(&journal{})
	var followers []*events.Follower
	defer func() {
		for _, f := range followers {
			f.Close()
		}
	}()
	for {
		f, err := tail.Follow(t.Context(), "", 0, nil)
		if err != nil {
			if fleet.CodeOf(err) != fleet.CodeUnavailable || len(followers) < 1000 {
				t.Errorf("after %d: %v", len(followers), err)
			}
			return
		}
		followers = append(followers, f)
		if len(followers) > 10000 {
			t.Fatal("10000 were let in")
		}
	}
}

func TestOneCallerTakesNobodyElsesPlace(t *testing.T) {
	tail := tail(&journal{})
	places := func(caller string, most int) (list []*events.Follower, err error) {
		for len(list) < most {
			f, err := tail.Follow(t.Context(), caller, 0, nil)
			if err != nil {
				return list, err
			}
			list = append(list, f)
		}
		return list, nil
	}
	greedy, err := places("greedy", 4096)
	if len(greedy) != 64 || fleet.CodeOf(err) != fleet.CodeRateLimited {
		t.Errorf("%d places, %v", len(greedy), err)
	}
	for _, other := range []string{"another", ""} {
		list, err := places(other, 64)
		if err != nil {
			t.Errorf("%q: %d places, %v", other, len(list), err)
		}
		for _, f := range list {
			defer f.Close()
		}
	}
	greedy[0].Close()
	greedy[0].Close() // a second time gives nothing back
	again, err := places("greedy", 2)
	if len(again) != 1 || fleet.CodeOf(err) != fleet.CodeRateLimited {
		t.Errorf("after one has gone: %d places, %v", len(again), err)
	}
	for _, f := range append(greedy, again...) {
		f.Close()
	}
	if list, err := places("greedy", 64); err != nil {
		t.Errorf("when all have gone: %d places, %v", len(list), err)
	} else {
		for _, f := range list {
			f.Close()
		}
	}
}
