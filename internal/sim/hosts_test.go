package sim_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/runnerhost"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// The real adapter against the simulated hosts, over SSH and under the very
// sudoers file that is shipped: each keeps the other honest.

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

// lab is a world whose hosts are reached as Sluice reaches them.
type lab struct {
	*sim.World
	t      *testing.T
	hosts  *runnerhost.Hosts
	number int64
}

func newLab(t *testing.T, o sim.Options) *lab {
	t.Helper()
	rules, err := os.ReadFile("../../deploy/sudoers/sluice")
	if err != nil {
		t.Fatal(err)
	}
	o.Sudoers = string(rules)
	w := newWorld(t, o)
	signer, err := w.Signer()
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := runnerhost.New(runnerhost.Options{
		Settings: w.Spec().Host, Signers: []ssh.Signer{signer}, Clock: wallClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hosts.Close)
	return &lab{World: w, t: t, hosts: hosts}
}

func (l *lab) target(vm string) engine.Target {
	l.t.Helper()
	list, err := l.Cloud().Describe(l.t.Context(), vm)
	if err != nil || len(list) != 1 {
		l.t.Fatalf("%s: %v, %v", vm, list, err)
	}
	return engine.Target{Ref: fleet.Ref{Fleet: "demo", VM: vm}, Instance: list[0].ID, Address: list[0].Address, HostKeys: list[0].HostKeys}
}

func (l *lab) order(verb fleet.OrderVerb) fleet.Order {
	l.number++
	return fleet.Order{Verb: verb, Owner: "sluice-demo", Operation: "op-lab", Number: l.number}
}

// look reads until the host answers and the reading satisfies.
func (l *lab) look(vm, what string, satisfied func(*fleet.HostReading) bool) *fleet.HostReading {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 20*time.Second)
	defer cancel()
	var got *fleet.HostReading
	err := until(ctx, func() (bool, error) {
		r, err := l.hosts.Look(ctx, l.target(vm))
		got = r
		return err == nil && satisfied(r), nil
	})
	if err != nil {
		l.t.Fatalf("never came: %s; last reading %+v", what, got)
	}
	return got
}

func (l *lab) job(length time.Duration) int64 {
	l.t.Helper()
	id := l.GitLab().Enqueue(simgitlab.JobSpec{Duration: length, AfterDuration: 100 * time.Millisecond})
	l.look("runner-01", "the job's container", func(r *fleet.HostReading) bool { return len(r.Containers) == 1 })
	return id
}

func (l *lab) wantJob(id int64, want simgitlab.Verdict) {
	l.t.Helper()
	if rec, _ := l.GitLab().Job(id); rec.Verdict != want {
		l.t.Errorf("job %d is %s, want %s", id, rec.Verdict, want)
	}
}

func running(r *fleet.HostReading) bool { return r.Unit.ActiveState == "active" && r.Unit.MainPID != 0 }

func TestInspectFindsNothingAgainstASimulatedHost(t *testing.T) {
	l := newLab(t, sim.Options{VMs: 1, Boot: 50 * time.Millisecond})
	l.look("runner-01", "the runner", running)
	facts, err := l.hosts.Inspect(t.Context(), l.target("runner-01"))
	if err != nil {
		t.Fatal(err)
	}
	if err := fleet.RefuseHost(fleet.Ref{Fleet: "demo", VM: "runner-01"}, l.Spec().Host, facts); err != nil {
		t.Errorf("refused: %v\n%+v", err, facts)
	}
	h := l.Host("runner-01")
	if len(facts.SystemIDs) != 1 || facts.SystemIDs[0] != h.SystemID() || facts.Reading.Subject.BootID != h.BootID() || !facts.HasPidwait {
		t.Errorf("facts = %+v", facts)
	}
	if len(facts.Entries) != 1 || facts.Entries[0].URL != l.URL() || facts.Entries[0].TokenPrefix != "glrt-" || !facts.Entries[0].TokenExpiresAt.IsZero() {
		t.Errorf("entries = %+v", facts.Entries)
	}
}

func TestADrainLetsTheJobEndAndAwaitExitNoticesAtOnce(t *testing.T) {
	l := newLab(t, sim.Options{VMs: 1, Boot: 50 * time.Millisecond})
	id := l.job(time.Second)
	target := l.target("runner-01")
	r, err := l.hosts.StopIntake(t.Context(), target, l.order(fleet.OrderStop))
	if err != nil {
		t.Fatal(err)
	}
	if r.Unit.ActiveState != "deactivating" || !r.DropIn.Effective || r.DropIn.Owner != "sluice-demo" || r.DropIn.Number != 1 {
		t.Fatalf("reading after the stop: %+v", r)
	}
	seen, err := l.hosts.AwaitExit(t.Context(), target, r.Unit.MainPID, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if seen == nil || !seen.Unit.Stopped() || !seen.Complete() || !seen.TakenAt.After(r.TakenAt) {
		t.Errorf("reading of the exit: %+v", seen)
	}
	l.wantJob(id, simgitlab.VerdictSucceeded)
	if r := l.look("runner-01", "the end", func(*fleet.HostReading) bool { return true }); !r.Unit.Stopped() || r.Unit.Result != "success" || len(r.Containers) != 0 || !r.Complete() {
		t.Errorf("reading after the exit: %+v", r)
	}
}

func TestAnUndrainInMidJobRestoresAndALateStopIsRefused(t *testing.T) {
	l := newLab(t, sim.Options{VMs: 1, Boot: 50 * time.Millisecond})
	id := l.job(time.Second)
	target := l.target("runner-01")
	stop := l.order(fleet.OrderStop)
	before, err := l.hosts.StopIntake(t.Context(), target, stop)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.hosts.StartIntake(t.Context(), target, l.order(fleet.OrderStart)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.hosts.ReleaseIntake(t.Context(), target, l.order(fleet.OrderRelease)); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("a release in mid-job: %v", err)
	}
	l.look("runner-01", "a new process", func(r *fleet.HostReading) bool { return running(r) && r.Unit.MainPID != before.Unit.MainPID })
	l.wantJob(id, simgitlab.VerdictSucceeded)
	if r, err := l.hosts.ReleaseIntake(t.Context(), target, l.order(fleet.OrderRelease)); err != nil || r.DropIn.Present {
		t.Errorf("release: %+v, %v", r, err)
	}
	if _, err := l.hosts.StopIntake(t.Context(), target, stop); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("a late stop: %v", err)
	}
	if r := l.look("runner-01", "the unit", running); r.Unit.KillSignal != 15 || r.Unit.Restart != "always" {
		t.Errorf("unit after the late stop: %+v", r.Unit)
	}
}

func TestARebootInMidDrainIsSeenAndTheStopRepeated(t *testing.T) {
	l := newLab(t, sim.Options{VMs: 1, Boot: 50 * time.Millisecond})
	l.look("runner-01", "the runner", running)
	target := l.target("runner-01")
	if _, err := l.hosts.StopIntake(t.Context(), target, l.order(fleet.OrderStop)); err != nil {
		t.Fatal(err)
	}
	boot := l.Host("runner-01").BootID()
	l.Host("runner-01").Crash()
	r := l.look("runner-01", "the new boot", func(r *fleet.HostReading) bool { return running(r) })
	if r.Subject.BootID == boot || r.DropIn.Present {
		t.Errorf("reading after the power cut: %+v", r)
	}
	late := l.order(fleet.OrderStop)
	late.BootID = boot
	if _, err := l.hosts.StopIntake(t.Context(), target, late); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("a stop for another boot: %v", err)
	}
	if _, err := l.hosts.StopIntake(t.Context(), target, l.order(fleet.OrderStop)); err != nil {
		t.Fatal(err)
	}
	l.look("runner-01", "stopped again", func(r *fleet.HostReading) bool { return r.Unit.Stopped() && r.DropIn.Effective })
}

func TestAWholeFleetIsReplacedOverSSHWithoutDamage(t *testing.T) {
	l := newLab(t, small(true))
	busy(t, l.World)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	f := &engine.Fleet{Spec: l.Spec(), Hosts: numbered{l.hosts, l}, Machines: l.Cloud()}
	for _, vm := range f.VMs {
		if err := replace(ctx, f, vm); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Damage(); err != nil {
		t.Error(err)
	}
}

func TestSabotageShowsInTheLedgerOverSSHToo(t *testing.T) {
	for _, mode := range []string{sim.SabotagePodmanOnly, sim.SabotageStopFirst} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t, small(true))
			busy(t, l.World)
			f := &engine.Fleet{Spec: l.Spec(), Hosts: numbered{l.hosts, l}, Machines: l.Cloud()}
			if err := l.Sabotage(mode, f); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := replace(ctx, f, "runner-01"); err != nil {
				t.Fatal(err)
			}
			if err := l.DamageTo(); err == nil {
				t.Error("the ledger shows nothing")
			}
		})
	}
}

// numbered gives the test's driver real orders, and finds the host keys.
type numbered struct {
	engine.Hosts
	l *lab
}

func (n numbered) Look(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	return n.Hosts.Look(ctx, n.l.target(t.VM))
}

func (n numbered) StopIntake(ctx context.Context, t engine.Target, _ fleet.Order) (*fleet.HostReading, error) {
	return n.Hosts.StopIntake(ctx, n.l.target(t.VM), n.l.order(fleet.OrderStop))
}

func TestWhatIsWrongWithAHostIsRefusedBeforeAnythingIsStopped(t *testing.T) {
	for name, c := range map[string]struct {
		options func(*simhost.Options)
		fault   func(*simhost.Host)
		code    fleet.Code
	}{
		"a wrapper": {func(o *simhost.Options) {
			o.UnitText = "[Service]\nExecStart=/bin/sh -c \"/usr/bin/gitlab-runner run --config /etc/gitlab-runner/config.toml\"\nUser=fedora\n"
		}, nil, fleet.CodeInvalid},
		"two units":      {nil, func(h *simhost.Host) { h.SecondUnit("gitlab-runner2.service") }, fleet.CodeInvalid},
		"podman missing": {nil, func(h *simhost.Host) { h.Uninstall("podman") }, fleet.CodeInvalid},
		"two system_ids": {nil, func(h *simhost.Host) { h.SecondSystemID("/home/fedora/.gitlab-runner", "s_0123456789ab") }, fleet.CodeConflict},
		"sudo refuses":   {nil, func(h *simhost.Host) { h.RefuseSudo("systemctl", "stop") }, fleet.CodeForbidden},
		"an unregisterer": {func(o *simhost.Options) {
			o.UnitText = "[Service]\nExecStart=/usr/bin/gitlab-runner run --config /etc/gitlab-runner/config.toml\nUser=fedora\nExecStop=/usr/bin/gitlab-runner unregister --all-runners\n"
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, sim.Options{VMs: 1, Boot: 50 * time.Millisecond, Host: c.options})
			l.look("runner-01", "the runner", running)
			if c.fault != nil {
				c.fault(l.Host("runner-01"))
			}
			facts, err := l.hosts.Inspect(t.Context(), l.target("runner-01"))
			if err != nil {
				t.Fatal(err)
			}
			err = fleet.RefuseHost(fleet.Ref{Fleet: "demo", VM: "runner-01"}, l.Spec().Host, facts)
			if c.code != "" && fleet.CodeOf(err) != c.code {
				t.Errorf("refusal: %v, want %s\n%+v", err, c.code, facts)
			}
			if c.code == "" && len(facts.Unregisters)+len(facts.ExecStop) == 0 {
				t.Errorf("nobody saw the unregistering: %+v", facts)
			}
		})
	}
}
