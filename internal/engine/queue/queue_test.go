package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// patience bounds what must happen; how fast it is, the benchmarks say.
const patience = time.Minute

func TestWokenOperationIsLookedAtUntilItIsDone(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	l := newLooker(func(_ context.Context, _ string, n int) (time.Duration, bool, error) {
		return 1100 * time.Millisecond, n == 3, nil // longer than an attempt sits out
	})
	q := start(t, s, l, nil)
	id := ask(t, s, "a")[0]
	must(t, q.Wake(t.Context(), id))
	eventually(t, "three looks", patience, func() bool { return l.count(id) == 3 })
	eventually(t, "the job has ended", patience, func() bool {
		return jobs(t, s, "kind = 'vm_operation' and state = 'completed'") == 1
	})
	if n := jobs(t, s, "kind = 'vm_operation'"); n != 1 {
		t.Fatalf("%d jobs of one operation", n)
	}
	// It has ended; another wake-up is a new job and not a duplicate.
	must(t, q.Wake(t.Context(), id))
	eventually(t, "a look after the end", patience, func() bool { return l.count(id) == 4 })
}

func TestShortWaitIsSatOutWithoutTheQueue(t *testing.T) {
	s := freshStore(t)
	l := newLooker(func(_ context.Context, _ string, n int) (time.Duration, bool, error) {
		return 20 * time.Millisecond, n == 10, nil
	})
	q := start(t, s, l, nil)
	id := ask(t, s, "a")[0]
	must(t, q.Wake(t.Context(), id))
	eventually(t, "ten looks", patience, func() bool { return l.count(id) == 10 })
	eventually(t, "one attempt was enough", patience, func() bool {
		return jobs(t, s, "kind = 'vm_operation' and state = 'completed' and attempt = 1 and coalesce(metadata ->> '$.snoozes', 0) = 0") == 1
	})
}

func TestWakeEndsALongWait(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	l := newLooker(forever)
	q := start(t, s, l, nil)
	id := ask(t, s, "a")[0]
	chore := addChore(t, s, id)
	must(t, q.Wake(t.Context(), id))
	must(t, q.WakeChore(t.Context(), chore))
	resting := func(n int) func() bool {
		return func() bool {
			return l.count(id) == n && l.count(chore) == n && jobs(t, s, "kind like 'vm_%' and state = 'scheduled'") == 2
		}
	}
	eventually(t, "both rest", patience, resting(1))
	must(t, q.Wake(t.Context(), id))
	must(t, q.WakeChore(t.Context(), chore))
	eventually(t, "both were looked at again and rest", patience, resting(2))
}

func TestWakeDuringALookIsNotLost(t *testing.T) {
	s := freshStore(t)
	looking, goOn := make(chan struct{}), make(chan struct{})
	l := newLooker(func(ctx context.Context, _ string, n int) (time.Duration, bool, error) {
		if n == 1 {
			close(looking)
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
		return time.Hour, false, nil
	})
	q := start(t, s, l, nil)
	id := ask(t, s, "a")[0]
	must(t, q.Wake(t.Context(), id))
	<-looking
	must(t, q.Wake(t.Context(), id))
	close(goOn)
	eventually(t, "a second look", patience, func() bool { return l.count(id) == 2 })
}

// A wake-up that comes while an attempt is giving its place back falls into
// the gap between our books and River's.
func TestWakeIsNeverLostBetweenAttempts(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	var version atomic.Int64
	seen := make(chan int64, 1000)
	l := newLooker(func(context.Context, string, int) (time.Duration, bool, error) {
		select {
		case seen <- version.Load():
		default:
		}
		return time.Hour, false, nil
	})
	q := start(t, s, l, nil)
	id := ask(t, s, "a")[0]
	for want := int64(1); want <= 20; want++ {
		version.Store(want)
		must(t, q.Wake(t.Context(), id))
		deadline := time.After(patience)
		for got := int64(0); got < want; {
			select {
			case got = <-seen:
			case <-deadline:
				t.Fatalf("wake-up %d was lost", want)
			}
		}
	}
}

func TestFailedLooksAreRepeatedAndUseNoAttemptUp(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	l := newLooker(func(_ context.Context, _ string, n int) (time.Duration, bool, error) {
		switch n {
		case 1:
			return 0, false, errors.New("the disk is full")
		case 2:
			panic("a bug")
		default:
			return 0, true, nil
		}
	})
	q := start(t, s, l, nil)
	id := ask(t, s, "a")[0]
	must(t, q.Wake(t.Context(), id))
	eventually(t, "a third look", patience, func() bool { return l.count(id) == 3 })
	eventually(t, "the job ended in its first attempt, without errors", patience, func() bool {
		return jobs(t, s, "kind = 'vm_operation' and state = 'completed' and attempt = 1 and errors is null") == 1
	})
	for n, least := range map[int]time.Duration{2: time.Second, 3: 2 * time.Second} {
		if pause := l.at(id, n).Sub(l.at(id, n-1)); pause < least {
			t.Errorf("look %d came after %s, want a pause of %s", n, pause, least)
		}
	}
}

func TestStopEndsALookAndTheNextStartGoesOn(t *testing.T) {
	s := freshStore(t)
	looking := make(chan struct{})
	l := newLooker(func(ctx context.Context, _ string, n int) (time.Duration, bool, error) {
		if n == 1 {
			close(looking)
			<-ctx.Done()
			return 0, false, fleet.Errorf(fleet.CodeCanceled, "stopped: %w", ctx.Err())
		}
		return 0, true, nil
	})
	q := newQueue(t, s, l, nil)
	must(t, q.Start(t.Context()))
	id := ask(t, s, "a")[0]
	must(t, q.Wake(t.Context(), id))
	<-looking
	stop(t, q)
	if n := jobs(t, s, "kind = 'vm_operation' and state = 'available' and attempt = 0 and errors is null"); n != 1 {
		t.Fatal("the stopped attempt was counted, or is not to be repeated")
	}
	start(t, s, l, nil)
	eventually(t, "the next start goes on", patience, func() bool { return l.count(id) == 2 })
}

func TestStartLooksAtEverythingUnfinished(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	ids := ask(t, s, "a", "b")
	chore := addChore(t, s, ids[1])
	l := newLooker(forever)
	q := start(t, s, l, nil)
	everything := func(n int) func() bool {
		return func() bool { return l.count(ids[0]) == n && l.count(ids[1]) == n && l.count(chore) == n }
	}
	eventually(t, "all were looked at, though nobody woke them", patience, everything(1))
	eventually(t, "the engine sweeps", patience, func() bool { return l.swept() > 0 })
	stop(t, q)

	// The whole queue may be lost, too.
	_, err := s.DB().ExecContext(t.Context(), "delete from river_job")
	must(t, err)
	start(t, s, l, nil)
	eventually(t, "all were looked at again", patience, everything(2))
}

// JobCancel, a purge, a bug: while the controller runs, the sweep heals it.
func TestSweepHealsALostWakeUp(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	id := ask(t, s, "a")[0]
	l := newLooker(forever)
	q := start(t, s, l, nil)
	resting := func() bool { return jobs(t, s, "kind = 'vm_operation' and state = 'scheduled'") == 1 }
	eventually(t, "it was looked at and rests", patience, resting)
	_, err := s.DB().ExecContext(t.Context(), "update river_job set state = 'cancelled', finalized_at = scheduled_at where kind = 'vm_operation'")
	must(t, err)
	must(t, q.SweepNow(t.Context()))
	eventually(t, "it was looked at again", patience, func() bool { return l.count(id) == 2 })
}

func TestAloneOnlyOwnOperationsAreWorked(t *testing.T) {
	s := freshStore(t)
	ids := ask(t, s, "mine", "theirs")
	mine, theirs := addChore(t, s, ids[0]), addChore(t, s, ids[1])

	everybody := newLooker(forever) // leaves jobs of all of them behind
	q := newQueue(t, s, everybody, nil)
	must(t, q.Start(t.Context()))
	eventually(t, "all were looked at", patience, func() bool {
		return everybody.count(ids[0]) > 0 && everybody.count(ids[1]) > 0 && everybody.count(theirs) > 0 && everybody.count(mine) > 0
	})
	stop(t, q)
	_, err := s.DB().ExecContext(t.Context(), "update river_job set state = 'available', scheduled_at = '2020-01-01 00:00:00.000' where kind like 'vm_%'")
	must(t, err)

	alone := newLooker(forever)
	q = start(t, s, alone, func(id string) bool { return id == ids[0] })
	must(t, q.Wake(t.Context(), ids[1])) // as the engine does when the budget frees
	eventually(t, "mine were looked at", patience, func() bool { return alone.count(ids[0]) > 0 && alone.count(mine) > 0 })
	eventually(t, "all jobs rest", patience, func() bool { return jobs(t, s, "kind like 'vm_%' and state = 'scheduled'") == 4 })
	if alone.count(ids[1])+alone.count(theirs) > 0 {
		t.Error("another command's operation was worked")
	}
	if alone.swept() > 0 {
		t.Error("a command swept the fleets")
	}
}
