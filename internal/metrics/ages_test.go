package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// value is what a fleet's gauge says.
func value(t *testing.T, registry *prometheus.Registry, name, of string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if family.GetName() == name && len(series.GetLabel()) == 1 && series.GetLabel()[0].GetValue() == of {
				return series.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no series %s{fleet=%q}", name, of)
	return 0
}

func TestTheAgesAreOfTheOneThatIsLongestAtIt(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	op := func(vm string, kind fleet.Kind, phase fleet.Phase) fleet.Operation {
		return fleet.Operation{Fleet: "gcp", VM: vm, Kind: kind, Phase: phase, PhaseSince: ago(time.Minute)}
	}
	early, late := op("a", fleet.KindDrain, fleet.PhaseDraining), op("b", fleet.KindDrain, fleet.PhaseDraining)
	early.Drain.StoppedAt, early.Drain.Deadline = ago(time.Minute), noon.Add(9*time.Minute) // T34: by its own deadline
	late.Drain.StoppedAt, late.Drain.Deadline, late.Drain.Overran = ago(20*time.Minute), ago(10*time.Minute), true
	gone := op("c", fleet.KindRecreate, fleet.PhaseCreating)
	gone.Delete.IntentAt, gone.Drain.Overran = ago(5*time.Minute), true
	deleting := op("d", fleet.KindDelete, fleet.PhaseDeleting) // gone for good: nobody waits for it
	deleting.Delete.IntentAt = ago(time.Hour)
	elsewhere := op("a", fleet.KindRecreate, fleet.PhaseCreating)
	elsewhere.Fleet, elsewhere.Delete.IntentAt = "former", ago(time.Hour)
	_, registry := setup(t, State{Unfinished: []fleet.Operation{
		early, late, gone, deleting, op("e", fleet.KindUndrain, fleet.PhaseRestoring), elsewhere,
	}}, nil)
	for name, want := range map[string]float64{
		"sluice_drains_in_progress":          2,
		"sluice_drain_oldest_age_seconds":    1200,
		"sluice_drain_overdue_seconds":       600,
		"sluice_operations_overrun":          2,
		"sluice_restore_oldest_age_seconds":  60,
		"sluice_recreate_oldest_gap_seconds": 300,
		"sluice_drain_cap_seconds":           600,
		"sluice_gate_online_seconds":         120,
	} {
		if got := value(t, registry, name, "gcp"); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func TestADrainThatHasNotStoppedIntakeIsNotOverdue(t *testing.T) {
	op := fleet.Operation{Fleet: "gcp", VM: "a", Kind: fleet.KindDrain, Phase: fleet.PhaseDraining}
	_, registry := setup(t, State{Unfinished: []fleet.Operation{op}}, nil)
	for _, name := range []string{"sluice_drain_overdue_seconds", "sluice_drain_oldest_age_seconds", "sluice_recreate_oldest_gap_seconds"} {
		if got := value(t, registry, name, "gcp"); got != 0 {
			t.Errorf("%s is %v", name, got)
		}
	}
}
