package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// slowly is a provider whose new VM boots long before it calls the create done.
type slowly struct {
	engine.Machines
	w    *enginetest.World
	done time.Time
}

func (s slowly) Create(ctx context.Context, o engine.CreateOrder) (engine.Progress, error) {
	p, err := s.Machines.Create(ctx, o)
	if err == nil && s.w.Now().Before(s.done) {
		p = engine.Progress{}
	}
	return p, err
}

// The next VM keeps the system_id and takes a job at once, while its create is
// under way: what began after the stop need not be the old VM's. Seed 95388 of
// the worlds.
func TestAJobOfTheNextVMIsNotCalledCutBeforeThatVMIsWritten(t *testing.T) {
	w := enginetest.New("a")
	w.SameSystemID, w.BootDelay = true, 0
	done := w.Now().Add(time.Minute)
	w.With = func(f *engine.Fleet) { f.GitLab, f.Machines = traced{f.GitLab}, slowly{f.Machines, w, done} }
	id := w.Ask(fleet.KindRecreate, "a")
	once(w, "create:after", func() bool { return true }, func() { w.Job("a", 77, 3*time.Minute) })
	w.Run(50 * time.Second)
	op, vm := w.Op(id), w.VM("a")
	if op.Phase != fleet.PhaseCreating || vm == nil || vm.Busy != 77 {
		t.Fatalf("%s, no job runs on the new VM\n%s", op.Phase, w.Story())
	}
	if stop, exit := op.Drain.StoppedAt, op.Drain.ExitSeenAt; !vm.Born.After(stop) || vm.Born.After(exit.Add(fleet.RequestOutlives)) {
		t.Fatalf("the job began at %s; the stop was at %s and the exit at %s", vm.Born, stop, exit)
	}
	w.Run(time.Hour)
	if story := w.Story(); w.Op(id).Phase != fleet.PhaseSucceeded || strings.Contains(story, "was cut") || w.Meter.CutJobs != 0 {
		t.Errorf("%s, and a job that goes on is told as cut\n%s", w.Op(id).Phase, story)
	}
}
