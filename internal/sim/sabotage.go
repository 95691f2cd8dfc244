package sim

import (
	"context"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// The wrong methods in use, each as a decorator of the engine's ports. The
// ledger must show the damage that each of them does.
const (
	// SabotagePodmanOnly judges by the container list: empty is idle. The list
	// is empty before the result is with GitLab, and GitLab is slow just then.
	SabotagePodmanOnly = "podman-only"
	// SabotageStopFirst stops the unit before the drop-in is in effect.
	SabotageStopFirst = "stop-first"
	// SabotageByName deletes by name, and repeats a delete whose answer was late.
	SabotageByName = "by-name"
)

// Sabotages lists the modes.
func Sabotages() []string {
	return []string{SabotagePodmanOnly, SabotageStopFirst, SabotageByName}
}

// Sabotage puts a wrong method between the engine and the fleet's adapters.
// Errors: CodeInvalid for a mode that is not known.
func (w *World) Sabotage(mode string, f *engine.Fleet) error {
	switch mode {
	case SabotagePodmanOnly:
		w.SlowResults(20 * time.Second)
		f.Hosts = &podmanOnly{Hosts: f.Hosts, clock: w.clock}
		if f.GitLab != nil {
			f.GitLab = trusting{f.GitLab}
		}
	case SabotageStopFirst:
		f.Hosts = &stopFirst{Hosts: f.Hosts, w: w}
	case SabotageByName:
		f.Machines = &byName{Machines: f.Machines, w: w}
	default:
		return fleet.Errorf(fleet.CodeInvalid, "sabotage %q is not known", mode).WithHint("use podman-only, stop-first or by-name")
	}
	return nil
}

// SlowResults makes GitLab answer 500 to final updates for a while.
func (w *World) SlowResults(d time.Duration) {
	w.gitlab.Inject(simgitlab.Fault{Kind: simgitlab.FaultStatus, Code: 500, FinalUpdateOnly: true, For: d})
}

// podmanOnly believes the container list.
type podmanOnly struct {
	engine.Hosts
	clock simclock.Clock
}

// Look reports the unit as stopped as soon as no container is left.
func (p *podmanOnly) Look(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	r, err := p.Hosts.Look(ctx, t)
	if err != nil || !r.ContainersKnown || len(r.Containers) > 0 || !r.DropIn.Present {
		return r, err
	}
	lie := *r
	lie.Unit.ActiveState, lie.Unit.SubState, lie.Unit.Result, lie.Unit.MainPID = "inactive", "dead", "success", 0
	return &lie, nil
}

// Glance reports what Look does: this method knows no other.
func (p *podmanOnly) Glance(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	return p.Look(ctx, t)
}

// AwaitExit waits for an empty container list instead of for the process.
func (p *podmanOnly) AwaitExit(ctx context.Context, t engine.Target, _ int, limit time.Duration) (*fleet.HostReading, error) {
	for left := limit; left > 0; left -= 200 * time.Millisecond {
		r, err := p.Hosts.Look(ctx, t)
		if err != nil || r.ContainersKnown && len(r.Containers) == 0 {
			return nil, err
		}
		if !simclock.Sleep(ctx, p.clock, 200*time.Millisecond) {
			return nil, nil
		}
	}
	return nil, nil
}

// trusting believes that GitLab would say idle: these methods do not ask it.
type trusting struct{ engine.GitLab }

// Read reports an idle manager.
func (g trusting) Read(ctx context.Context, about fleet.Subject, after time.Time) *fleet.GitLabReading {
	r := g.GitLab.Read(ctx, about, after)
	lie := *r
	lie.Unknown, lie.Present, lie.Running, lie.Canceling, lie.OtherClaims = "", true, nil, nil, 0
	lie.Manager.Execution = fleet.ExecutionIdle
	return &lie
}

// stopFirst stops the unit as it is: a SIGTERM with 45 s to live.
type stopFirst struct {
	engine.Hosts
	w *World
}

// StopIntake waits until the VM runs a job, so that the damage is sure, and
// stops it the wrong way round.
func (s *stopFirst) StopIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	if h := s.w.Host(t.VM); h != nil {
		_ = s.w.await(ctx, func() string { // idle to the end: then nothing is cut
			if !s.w.inMidJob(h) {
				return t.VM + " is not in the middle of a job"
			}
			return ""
		})
		if m := h.Systemd(); m != nil {
			m.Stop(s.w.Spec().Host.Unit)
		}
	}
	return s.Hosts.StopIntake(ctx, t, o)
}

// byName deletes whatever carries the name, and once more when the new VM is
// at work: a repeat that came late.
type byName struct {
	engine.Machines
	w *World
}

// Delete deletes by name and arranges the late repeat.
func (b *byName) Delete(ctx context.Context, o engine.DeleteOrder) (engine.Progress, error) {
	if !slices.Contains(b.w.instancesOf(o.VM), o.Instance) {
		return b.Machines.Delete(ctx, o)
	}
	b.w.cloud.DeleteByName(o.VM)
	b.w.wait.Go(func() { b.repeat(o) })
	return engine.Progress{Done: true, Detail: "deleted " + o.VM}, nil
}

func (b *byName) repeat(o engine.DeleteOrder) {
	err := b.w.await(b.w.life, func() string {
		if h := b.w.Host(o.VM); h == nil || len(h.Containers()) == 0 {
			return o.VM + " is not at work again"
		}
		return ""
	})
	if err == nil {
		b.w.cloud.DeleteByName(o.VM)
	}
}

func (w *World) instancesOf(vm string) []string {
	var out []string
	for _, in := range w.cloud.Instances() {
		if in.VM == vm {
			out = append(out, in.ID)
		}
	}
	return out
}
