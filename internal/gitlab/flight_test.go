package gitlab

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// slowly is a request of a second that counts its beginnings and the times it
// was given up.
type slowly struct{ begun, givenUp atomic.Int64 }

func (s *slowly) fetch(ctx context.Context) (int, error) {
	n := int(s.begun.Add(1))
	select {
	case <-time.After(time.Second):
		return n, nil
	case <-ctx.Done():
		s.givenUp.Add(1)
		return 0, ctx.Err()
	}
}

func TestARequestUnderWayDoesNotServeWhoAsksForALaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := flights[int]{now: time.Now, fresh: time.Minute}, &slowly{}
		first := make(chan int)
		go func() { n, _, _ := f.get(t.Context(), "k", time.Now(), s.fetch); first <- n }()
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // synctest: no real time passes
		asked := time.Now()
		second := make(chan int)
		go func() {
			n, began, _ := f.get(t.Context(), "k", asked, s.fetch)
			if began.Before(asked) {
				t.Errorf("began %s before it was asked for", asked.Sub(began))
			}
			second <- n
		}()
		if n := <-first; n != 1 {
			t.Errorf("the first asker got answer %d", n)
		}
		if n := <-second; n != 2 {
			t.Errorf("the second asker got answer %d", n)
		}
	})
}

func TestARequestOutlivesWhoStartedItWhileAnotherWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := flights[int]{now: time.Now, fresh: time.Minute}, &slowly{}
		since := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		starter, joiner := make(chan error), make(chan int)
		go func() { _, _, err := f.get(ctx, "k", since, s.fetch); starter <- err }()
		synctest.Wait()
		go func() { n, _, _ := f.get(t.Context(), "k", since, s.fetch); joiner <- n }()
		synctest.Wait()
		cancel()
		if err := <-starter; fleet.CodeOf(err) != fleet.CodeCanceled {
			t.Errorf("the starter got %v", err)
		}
		if n := <-joiner; n != 1 || s.givenUp.Load() != 0 {
			t.Errorf("the joiner got answer %d; given up %d times", n, s.givenUp.Load())
		}
	})
}

func TestARequestThatNobodyWaitsForIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := flights[int]{now: time.Now, fresh: time.Minute}, &slowly{}
		since := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, _, err := f.get(ctx, "k", since, s.fetch); fleet.CodeOf(err) != fleet.CodeUnavailable {
			t.Errorf("err = %v", err)
		}
		synctest.Wait()
		if s.givenUp.Load() != 1 {
			t.Errorf("given up %d times", s.givenUp.Load())
		}
		if n, _, err := f.get(t.Context(), "k", since, s.fetch); err != nil || n != 2 {
			t.Errorf("who comes later got answer %d, %v", n, err)
		}
	})
}

func TestKeysDoNotShareAndOldAnswersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := flights[int]{now: time.Now, fresh: time.Second}, &slowly{}
		since := time.Now()
		for i, key := range []string{"a", "b", "a"} {
			n, _, err := f.get(t.Context(), key, since, s.fetch)
			if want := i + 1; err != nil || n != want { // a's answer is a second old
				t.Errorf("key %s: answer %d, %v; want %d", key, n, err, want)
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // synctest: no real time passes
		f.mu.Lock()
		f.forget(time.Now())
		left := len(f.byK)
		f.mu.Unlock()
		if left != 0 {
			t.Errorf("%d answers are kept", left)
		}
	})
}
