package queue

import (
	"testing"
	"time"
)

func TestPausesDoubleUpToAMinute(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1 << 30: time.Minute,
	} {
		if got := pauseAfter(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

func TestAPlaceIsNotLeftWithAWakeUpUnanswered(t *testing.T) {
	d := newDesk()
	about := subject{"operation", "op-1"}
	if d.poke(about) {
		t.Fatal("there is nobody to poke")
	}
	p := d.begin(about)
	for range 2 { // the second one has nothing to add
		if !d.poke(about) {
			t.Fatal("the running attempt was not poked")
		}
	}
	if d.leave(about, p) {
		t.Fatal("left with a wake-up unanswered")
	}
	<-p.poke
	if !d.leave(about, p) || d.poke(about) {
		t.Fatal("the place is still open")
	}
	late := d.begin(about)
	d.poke(about)
	if rest := d.remaining(about, late, time.Hour); rest != 0 {
		t.Fatalf("rests for %s after a wake-up", rest)
	}
	if d.poke(about) {
		t.Fatal("a closed place was poked")
	}
}

// An attempt that never ended is replaced; its late end must not close the
// place of the one after it.
func TestALateEndDoesNotCloseTheNextAttemptsPlace(t *testing.T) {
	d := newDesk()
	about := subject{"operation", "op-1"}
	old := d.begin(about)
	d.begin(about)
	d.drop(about, old)
	if !d.poke(about) {
		t.Fatal("the place of the attempt that runs was closed")
	}
}
