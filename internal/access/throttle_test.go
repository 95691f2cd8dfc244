package access

import (
	"errors"
	"testing"
	"time"
)

// hand is a clock that is moved by hand.
type hand struct{ at time.Time }

func (h *hand) Now() time.Time { return h.at }

func TestACallersChangesAreLimitedAndWhatOnlyReadsIsNot(t *testing.T) {
	clock := &hand{time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	throttle := NewThrottle(clock)
	admitted := func(caller string, change bool, n int) (in int) {
		for range n {
			err := throttle.Admit(caller, change)
			if err == nil {
				in++
				continue
			}
			if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Reason != ReasonRate {
				t.Fatalf("refused with %v", err)
			}
		}
		return in
	}
	if n := admitted("alice", true, 40); n != 30 {
		t.Errorf("%d changes at once were let in, want 30", n)
	}
	if n := admitted("alice", false, 40); n != 40 {
		t.Errorf("too many changes, and of 40 reads %d were let in", n)
	}
	if n := admitted("bob", true, 1); n != 1 {
		t.Error("one caller's changes use up another's")
	}
	clock.at = clock.at.Add(2 * time.Second)
	if n := admitted("alice", true, 10); n != 2 {
		t.Errorf("%d changes were let in 2 s later, want 2", n)
	}
	clock.at = clock.at.Add(time.Hour)
	if n := admitted("alice", true, 40); n != 30 {
		t.Errorf("%d changes at once were let in an hour later, want 30", n)
	}
}
