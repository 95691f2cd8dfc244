package metrics

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestAContradictionIsCountedOnceByItsKind(t *testing.T) {
	m, _ := setup(t, State{}, nil)
	draining := &fleet.Operation{Fleet: "gcp", Kind: fleet.KindRecreate, Phase: fleet.PhaseDraining}
	ended := *draining
	ended.Phase, ended.Drain.Disagreed = fleet.PhaseDeleting, fleet.DisagreedContainers
	m.OperationMoved(draining, &ended)
	m.OperationMoved(&ended, &ended)
	m.OperationMoved(&ended, draining) // the proof did not hold
	for kind, want := range map[string]float64{
		string(fleet.DisagreedContainers): 1, disagreedProofLost: 1, string(fleet.DisagreedGitLab): 0,
	} {
		if got := testutil.ToFloat64(m.disagreements.WithLabelValues(kind)); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

func TestASkippedDrainIsNotCountedAsDrained(t *testing.T) {
	before := &fleet.Operation{Phase: fleet.PhaseDraining, Drain: fleet.DrainState{StoppedAt: noon}}
	after := *before
	after.Phase, after.Drain.Verdict = fleet.PhaseDeleting, fleet.VerdictSkipped
	if got := outcome(&after); got != "skipped" {
		t.Errorf("its outcome is %s", got)
	}
}

func TestADeliveryIsCountedByEventAndResult(t *testing.T) {
	m, _ := setup(t, State{}, nil)
	m.Delivery("pipeline", "accepted")
	for result, want := range map[string]float64{"accepted": 1, "failed": 0} {
		if got := testutil.ToFloat64(m.deliveries.WithLabelValues("pipeline", result)); got != want {
			t.Errorf("%v %s, want %v", got, result, want)
		}
	}
}

func TestWithoutWebhooksThereIsNoSeriesOfThem(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	_, err := New(registry, Options{Clock: still(noon), State: func(context.Context) (State, error) { return State{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.Contains(family.GetName(), "webhook") {
			t.Errorf("%s has no source", family.GetName())
		}
	}
}

func TestAClockThatWasSetBackMakesNoNegativeAge(t *testing.T) {
	op := fleet.Operation{Fleet: "gcp", VM: "a", Kind: fleet.KindRecreate, Phase: fleet.PhaseDraining}
	op.Drain.StoppedAt, op.Drain.Deadline = noon.Add(time.Hour), noon.Add(2*time.Hour)
	_, registry := setup(t, State{Unfinished: []fleet.Operation{op}}, nil)
	if got := value(t, registry, "sluice_drain_oldest_age_seconds", "gcp"); got != 0 {
		t.Errorf("an age of %v", got)
	}
}
