package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim"
)

func small(jobs bool) sim.Options {
	return sim.Options{VMs: 2, Jobs: jobs, MinJob: time.Second, MaxJob: 2 * time.Second, Boot: 100 * time.Millisecond}
}

func TestAWorldKeepsItsVMsBusyAndNothingIsDamagedButTheyAreOld(t *testing.T) {
	w := newWorld(t, small(true))
	busy(t, w)
	s := w.Summary()
	if s.JobsRun < 2 || s.Cut != 0 || len(s.Strays) != 0 || s.Replaced != 0 {
		t.Errorf("summary = %+v", s)
	}
	if err := w.Damage(); err == nil || !strings.Contains(err.Error(), "runner-01 is still the old instance") {
		t.Errorf("damage = %v", err)
	}
	if err := w.DamageTo(); err != nil {
		t.Errorf("damage where nothing should be new = %v", err)
	}
}

func TestTheLedgerShowsAVMThatIsCutMissingOrDoubled(t *testing.T) {
	w := newWorld(t, small(true))
	busy(t, w)
	w.Cloud().DeleteByName("runner-01")
	if _, err := w.Cloud().Appear("runner-02", nil); err != nil {
		t.Fatal(err)
	}
	err := w.Damage()
	for _, want := range []string{"was cut on", "no VM carries the name of runner-01", "two VMs carry the name of runner-02"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("damage = %v, want %q", err, want)
		}
	}
}

func TestACarefulMethodDoesNoDamageEvenWhileResultsAreSlow(t *testing.T) {
	w := newWorld(t, small(true))
	busy(t, w)
	w.SlowResults(3 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	f := &engine.Fleet{Spec: w.Spec(), Hosts: direct{w}, Machines: w.Cloud()}
	for _, vm := range f.VMs {
		if err := replace(ctx, f, vm); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Damage(); err != nil {
		t.Error(err)
	}
	if s := w.Summary(); s.Replaced != 2 || len(s.Strays) != 0 {
		t.Errorf("summary = %+v", s)
	}
}

func TestEverySabotageShowsInTheLedger(t *testing.T) {
	for mode, want := range map[string]string{
		sim.SabotagePodmanOnly: "was cut on", sim.SabotageStopFirst: "was cut on", sim.SabotageByName: "no VM carries the name",
	} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, small(true))
			busy(t, w)
			f := &engine.Fleet{Spec: w.Spec(), Hosts: direct{w}, Machines: w.Cloud()}
			if err := w.Sabotage(mode, f); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := replace(ctx, f, "runner-01"); err != nil && mode != sim.SabotageByName {
				t.Fatal(err)
			}
			if err := until(ctx, func() (bool, error) { return w.DamageTo() != nil, nil }); err != nil {
				t.Fatal("the ledger shows nothing")
			}
			if err := w.DamageTo(); !strings.Contains(err.Error(), want) {
				t.Errorf("damage = %v, want %q", err, want)
			}
		})
	}
}

func TestAnUnknownSabotageIsRefused(t *testing.T) {
	w := newWorld(t, sim.Options{VMs: 1})
	if err := w.Sabotage("gently", &engine.Fleet{}); fleet.CodeOf(err) != fleet.CodeInvalid {
		t.Errorf("err = %v", err)
	}
}
