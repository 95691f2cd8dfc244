package engine_test

import (
	"context"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// mute is a host whose containers cannot be listed while it is told so.
type mute struct {
	engine.Hosts
	now *bool
}

func (m mute) Look(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	r, err := m.Hosts.Look(ctx, t)
	if err == nil && *m.now {
		r.ContainersKnown = false
	}
	return r, err
}

// The runner is gone at the first proof of an unproven drain. The delete's answer
// is lost, and at the second proof the host is gone, too: what GitLab was last
// heard to show had ended well by then. Seed 40495 of the worlds.
func TestAJobThatEndedBeforeALostDeleteIsNotCut(t *testing.T) {
	for name, c := range map[string]struct {
		mute   bool                    // no look has seen the whole of the exit
		second func(*enginetest.World) // at the second proof
	}{
		"GitLab does not answer":                       {second: func(*enginetest.World) {}},
		"GitLab answers, and shows the job still":      {second: func(w *enginetest.World) { w.GitLabDown = false }},
		"the exit was not proven, but the host looked": {mute: true, second: func(*enginetest.World) {}},
	} {
		t.Run(name, func(t *testing.T) {
			w, muted := enginetest.New("a"), false
			w.With = func(f *engine.Fleet) { f.Hosts = mute{f.Hosts, &muted} }
			w.DeleteDelay, w.Lose = 30*time.Second, map[string]int{"delete": 1}
			w.Job("a", 42, 3*time.Minute)
			vm := w.VM("a")
			id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.OnUnproven = fleet.UnprovenProceed })
			w.Run(2 * time.Minute)
			w.GitLabDown, muted = true, c.mute
			once(w, "delete:after", func() bool { return true }, func() {
				w.Orphan("a", fleet.Job{ID: 42, StartedAt: vm.Born}) // GitLab has not processed its end
				c.second(w)
			})
			w.Run(9 * time.Minute)
			op := w.Op(id)
			if op.Drain.Verdict != fleet.VerdictUnproven || op.Delete.Attempt != 2 || len(op.Drain.Jobs) != 1 {
				t.Fatalf("%s with %d attempts, %v\n%s", op.Drain.Verdict, op.Delete.Attempt, op.Drain.Jobs, w.Story())
			}
			if len(op.CutJobs) != 0 {
				t.Errorf("recorded as cut: %v\n%s", op.CutJobs, w.Story())
			}
		})
	}
}
