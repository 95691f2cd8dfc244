package engine_test

import (
	"context"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// endedAgo are hosts whose systemd says how long ago the runner ended.
type endedAgo struct {
	engine.Hosts
	ago time.Duration
}

func (e endedAgo) Inspect(ctx context.Context, t engine.Target) (*fleet.HostFacts, error) {
	f, err := e.Hosts.Inspect(ctx, t)
	if err == nil {
		f.Ended = e.ago
	}
	return f, err
}

// Somebody has stopped the runner, and GitLab's answer at preflight does not list
// its manager. Where it ended lately, that may be a stale answer, and GitLab may
// show a job of it still. Seeds 81391 and 91380 of the worlds.
func TestAVMWhoseRunnerEndedLatelyIsNotCalledNeverJoined(t *testing.T) {
	for name, c := range map[string]struct {
		ended  time.Duration // ago; 0 = none has run in this boot
		result string        // of the unit
		want   fleet.Verdict
	}{
		"ended a minute ago":        {time.Minute, "success", fleet.VerdictDrained},
		"killed ten minutes ago":    {10 * time.Minute, "signal", fleet.VerdictDrained},
		"ended a long time ago":     {20 * time.Minute, "success", fleet.VerdictNever},
		"could not start":           {time.Minute, "exit-code", fleet.VerdictNever},
		"never ran since the start": {0, "success", fleet.VerdictNever},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			w.With = func(f *engine.Fleet) { f.Hosts = endedAgo{f.Hosts, c.ended} }
			vm := w.VM("a")
			vm.Unit = fleet.UnitState{ActiveState: "inactive", SubState: "dead", Result: c.result}
			w.Removed = []string{vm.SystemID}
			id := w.Ask(fleet.KindDrain, "a")
			once(w, "commit:after", func() bool { return w.Op(id).Phase == fleet.PhaseDraining }, func() { w.Removed = nil })
			w.Run(time.Hour)
			if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || op.Drain.Verdict != c.want {
				t.Errorf("%s by %q, want %q\n%s", op.Phase, op.Drain.Verdict, c.want, w.Story())
			}
		})
	}
}
