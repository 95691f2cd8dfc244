package sim_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newWorld(t *testing.T, o sim.Options) *sim.World {
	t.Helper()
	t.Parallel() // most of a test is waiting
	o.Now = time.Now
	w, err := sim.NewWorld(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func busy(t *testing.T, w *sim.World) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.AwaitBusy(ctx); err != nil {
		t.Fatal(err)
	}
}

// direct is a careful method over the model itself, without SSH: what the
// sabotage is measured against.
type direct struct{ w *sim.World }

func (d direct) host(t engine.Target) (*simhost.Host, error) {
	if h := d.w.HostOf(t.Instance); h != nil && h.Up() {
		return h, nil
	}
	return nil, fleet.Errorf(fleet.CodeUnavailable, "%s is not there", t.Ref)
}

func (d direct) Inspect(context.Context, engine.Target) (*fleet.HostFacts, error) {
	return &fleet.HostFacts{}, nil
}

func (d direct) Glance(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	return d.Look(ctx, t)
}

func (d direct) Look(_ context.Context, t engine.Target) (*fleet.HostReading, error) {
	h, err := d.host(t)
	if err != nil {
		return nil, err
	}
	r := &fleet.HostReading{
		Subject: fleet.Subject{Ref: t.Ref, Incarnation: fleet.Incarnation{Instance: t.Instance, BootID: h.BootID(), SystemID: h.SystemID()}},
		TakenAt: time.Now(), ContainersKnown: true,
	}
	for _, c := range h.Containers() {
		r.Containers = append(r.Containers, fleet.Container{Name: c.Names[0], State: c.State})
	}
	for _, p := range h.Systemd().Show("gitlab-runner.service") {
		switch p.Name {
		case "ActiveState":
			r.Unit.ActiveState = p.Value
		case "Result":
			r.Unit.Result = p.Value
		case "MainPID":
			r.Unit.MainPID, _ = strconv.Atoi(p.Value)
		case "KillSignal":
			r.DropIn.Present, r.DropIn.Effective = p.Value == "3", p.Value == "3"
		}
	}
	return r, nil
}

func (d direct) StopIntake(ctx context.Context, t engine.Target, _ fleet.Order) (*fleet.HostReading, error) {
	h, err := d.host(t)
	if err != nil {
		return nil, err
	}
	h.Files().Put("/run/systemd/system/gitlab-runner.service.d/zz.conf",
		"[Service]\nRestart=no\nKillSignal=SIGQUIT\nKillMode=mixed\nTimeoutStopSec=infinity\n", "root", 0o644)
	h.Systemd().Reload()
	h.Systemd().Stop("gitlab-runner.service")
	return d.Look(ctx, t)
}

func (d direct) AwaitExit(ctx context.Context, t engine.Target, pid int, limit time.Duration) (*fleet.HostReading, error) {
	deadline := time.After(limit)
	for {
		r, err := d.Look(ctx, t)
		if err != nil || r.Unit.MainPID != pid {
			return nil, err
		}
		select {
		case <-deadline:
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (d direct) EndJobs(context.Context, engine.Target, fleet.Order) error { return nil }

func (d direct) StartIntake(ctx context.Context, t engine.Target, _ fleet.Order) (*fleet.HostReading, error) {
	return d.Look(ctx, t)
}

func (d direct) ReleaseIntake(ctx context.Context, t engine.Target, _ fleet.Order) (*fleet.HostReading, error) {
	return d.Look(ctx, t)
}

func (d direct) Forget(engine.Target) {}

// replace recreates one VM: stop intake, wait for the end, delete, create,
// wait until it is ready.
func replace(ctx context.Context, f *engine.Fleet, vm string) error {
	before, err := f.Machines.Describe(ctx, vm)
	if err != nil || len(before) != 1 {
		return fleet.Errorf(fleet.CodeConflict, "%s: %v, %v", vm, before, err)
	}
	ref := fleet.Ref{Fleet: f.Name, VM: vm}
	target := engine.Target{Ref: ref, Instance: before[0].ID, Address: before[0].Address}
	if _, err := f.Hosts.StopIntake(ctx, target, fleet.Order{}); err != nil {
		return err
	}
	for {
		r, err := f.Hosts.Look(ctx, target)
		if err != nil {
			return err
		}
		if r.Unit.Stopped() {
			break
		}
		if _, err := f.Hosts.AwaitExit(ctx, target, r.Unit.MainPID, time.Second); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	op := "op-" + vm
	deletion := engine.DeleteOrder{Ref: ref, Operation: op, Attempt: 1, Token: "delete-" + vm, Instance: target.Instance}
	if err := until(ctx, func() (bool, error) { p, err := f.Machines.Delete(ctx, deletion); return p.Done, err }); err != nil {
		return err
	}
	if err := until(ctx, func() (bool, error) {
		left, err := f.Machines.Remains(ctx, deletion)
		return len(left) == 0, err
	}); err != nil {
		return err
	}
	prepared, err := f.Machines.Prepare(ctx, vm, f.Image)
	if err != nil {
		return err
	}
	creation := engine.CreateOrder{Ref: ref, Operation: op, Attempt: 1, Token: "create-" + vm, Prepared: prepared}
	if err := until(ctx, func() (bool, error) { p, err := f.Machines.Create(ctx, creation); return p.Done, err }); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		now, err := f.Machines.Describe(ctx, vm)
		return len(now) == 1 && now[0].Ready, err
	})
}

func until(ctx context.Context, done func() (bool, error)) error {
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
