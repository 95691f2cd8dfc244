package runnerhost

import (
	"sync/atomic"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// newWorldAhead is a world whose host's time leaps ahead by what ahead says.
func newWorldAhead(t *testing.T) (w *world, ahead *atomic.Int64) {
	t.Helper()
	ahead = &atomic.Int64{}
	w = newWorld(t, func(o *simhost.Options) {
		o.Clock = simclock.NewReal(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	})
	return w, ahead
}

// Seeds 81391 and 91380 of the worlds: how long ago the runner ended is reckoned
// by the host's own clock, since its boot.
func TestHowLongAgoTheRunnerEndedIsInspected(t *testing.T) {
	w, ahead := newWorldAhead(t)
	ahead.Add(int64(3 * time.Hour)) // so long it is up
	if f := w.inspect(); f.Ended != 0 || f.EndedLately() {
		t.Errorf("it runs, and ended %s ago", f.Ended)
	}
	w.Systemd().Stop("gitlab-runner.service")
	w.eventually("the runner has ended", func() bool { return w.show("MainPID") == "0" })
	for _, c := range []struct {
		after  time.Duration // the end
		lately bool
	}{{0, true}, {10 * time.Minute, true}, {2 * time.Hour, false}} {
		ahead.Store(int64(3*time.Hour + c.after))
		f := w.inspect()
		if f.Ended <= 0 || f.Ended < c.after-time.Second || f.Ended > c.after+10*time.Second || f.EndedLately() != c.lately {
			t.Errorf("after %s it is said to have ended %s ago, lately: %t", c.after, f.Ended, f.EndedLately())
		}
	}
}

// What ran before the boot has ended with that; systemd knows nothing of it.
func TestARunnerThatWasNotStartedInThisBootHasNotEnded(t *testing.T) {
	const unit = "/etc/systemd/system/gitlab-runner.service"
	w, ahead := newWorldAhead(t)
	ahead.Add(int64(time.Hour))
	text, err := w.Files().ReadFile(unit, memfs.Root)
	if err != nil {
		t.Fatal(err)
	}
	w.Files().RemoveAll(unit) // nothing to start at the boot
	w.Crash()
	w.eventually("the host is up", w.Up)
	w.Files().Put(unit, string(text), memfs.Root, 0o644)
	w.Systemd().Reload()
	ahead.Add(int64(time.Minute))
	if f := w.inspect(); !f.UnitLoaded || f.Reading.Unit.MainPID != 0 || f.Ended != 0 || f.EndedLately() {
		t.Errorf("loaded %t, main pid %d, ended %s ago", f.UnitLoaded, f.Reading.Unit.MainPID, f.Ended)
	}
}
