package engine_test

import (
	"context"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// shells are hosts whose jobs run in the host's own shell: no containers.
type shells struct{ engine.Hosts }

func (s shells) Look(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	r, err := s.Hosts.Look(ctx, t)
	if r != nil {
		r.Containers = nil
	}
	return r, err
}

func (s shells) AwaitExit(ctx context.Context, t engine.Target, pid int, limit time.Duration) (*fleet.HostReading, error) {
	r, err := s.Hosts.AwaitExit(ctx, t, pid, limit)
	if r != nil {
		r.Containers = nil
	}
	return r, err
}

// On a host that shows no containers
// (shell executor), intake that was opened again by a reboot may have brought
// other jobs: the lists of before it are not those of now.
func TestTheLinksAreReadAnewWhenIntakeHadToBeStoppedAgain(t *testing.T) {
	w := enginetest.New("a")
	w.With = func(f *engine.Fleet) { f.Hosts = shells{f.Hosts} }
	w.Job("a", 42, time.Hour)
	id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Cap = 6 * time.Minute })
	w.Run(2*time.Minute + 30*time.Second) // at rest
	w.Reboot("a")                         // 42 is cut
	w.Job("a", 43, time.Hour)             // and another one comes before intake is stopped again
	w.Run(2 * time.Minute)
	if jobs := w.Op(id).Drain.Jobs; len(jobs) != 1 || jobs[0].ID != 43 {
		t.Errorf("two minutes later it waits for %v: %s", jobs, w.Op(id).Waiting)
	}
	w.GitLabDown = true
	w.Run(time.Hour)
	if op := w.Op(id); len(op.CutJobs) != 1 || op.CutJobs[0].ID != 43 {
		t.Errorf("recorded as cut %v, cut in truth %v\n%s", op.CutJobs, w.Cut, w.Story())
	}
}
