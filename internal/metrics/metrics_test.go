package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

type still time.Time

func (s still) Now() time.Time { return time.Time(s) }

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func setup(t *testing.T, state State, stateErr error) (*Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	spec := fleet.Spec{Name: "gcp", VMs: []string{"a", "b", "c"}, Drain: fleet.DefaultDrainPolicy(), GateOnline: 2 * time.Minute}
	m, err := New(registry, Options{
		Fleets: map[string]fleet.Spec{"gcp": spec}, Version: "test", Clock: still(noon),
		State:  func(context.Context) (State, error) { return state, stateErr },
		Routes: []string{"/runners/:id"}, Providers: []string{"exec"}, Refusals: []string{"missing", "policy"},
		Events: hooks.Events(), Results: hooks.Results(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, registry
}

func TestARefusedCallerIsCountedByItsReason(t *testing.T) {
	m, registry := setup(t, State{}, nil)
	m.AccessRefused("policy")
	want := `# HELP sluice_access_refusals_total Requests that were refused because of who sent them, by reason (docs/access.md).
# TYPE sluice_access_refusals_total counter
sluice_access_refusals_total{reason="missing"} 0
sluice_access_refusals_total{reason="policy"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "sluice_access_refusals_total"); err != nil {
		t.Error(err)
	}
}

func TestTheSeriesPassPrometheussOwnLint(t *testing.T) {
	_, registry := setup(t, State{}, nil)
	found, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range found {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

func TestEverySeriesIsThereFromTheStart(t *testing.T) {
	_, registry := setup(t, State{}, nil)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			var value float64
			switch {
			case series.GetCounter() != nil:
				value = series.GetCounter().GetValue()
			case series.GetHistogram() != nil:
				value = float64(series.GetHistogram().GetSampleCount())
			}
			if value != 0 {
				t.Errorf("%s starts at %v", family.GetName(), value)
			}
		}
	}
	expect(t, registry, "sluice_drain_overruns_total", `
# HELP sluice_drain_overruns_total Drains whose cap passed with a job running, by overrun policy.
# TYPE sluice_drain_overruns_total counter
sluice_drain_overruns_total{fleet="gcp",policy="abort"} 0
sluice_drain_overruns_total{fleet="gcp",policy="proceed"} 0
sluice_drain_overruns_total{fleet="gcp",policy="wait"} 0
`)
}

func expect(t *testing.T, registry *prometheus.Registry, name, want string) {
	t.Helper()
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), name); err != nil {
		t.Error(err)
	}
}

func TestADrainIsMeasuredFromTheStopOfIntakeToItsEnd(t *testing.T) {
	m, registry := setup(t, State{}, nil)
	before := &fleet.Operation{Fleet: "gcp", Kind: fleet.KindRecreate, Phase: fleet.PhaseDraining, PhaseSince: noon.Add(-70 * time.Second)}
	before.Drain.StoppedAt = noon.Add(-60 * time.Second)
	after := *before
	after.Phase, after.UpdatedAt, after.Drain.Verdict = fleet.PhaseDeleting, noon, fleet.VerdictDrained
	m.OperationMoved(before, &after)
	if got := sum(t, registry, "sluice_drain_duration_seconds", "drained"); got != 60 {
		t.Errorf("drain of %v s, want 60", got)
	}
	if got := sum(t, registry, "sluice_operation_phase_duration_seconds", "draining"); got != 70 {
		t.Errorf("phase of %v s, want 70", got)
	}
}

func sum(t *testing.T, registry *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			for _, pair := range series.GetLabel() {
				if family.GetName() == name && pair.GetValue() == label {
					return series.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	t.Fatalf("no series %s{%s}", name, label)
	return 0
}

func TestOverrunsAndOutcomesAreCountedOnce(t *testing.T) {
	m, _ := setup(t, State{}, nil)
	before := &fleet.Operation{Fleet: "gcp", Kind: fleet.KindDelete, Phase: fleet.PhaseDraining}
	before.Request.Policy.OnOverrun = fleet.OverrunProceed
	overran := *before
	overran.Drain.Overran = true
	m.OperationMoved(before, &overran)
	m.OperationMoved(&overran, &overran)
	done := overran
	done.Phase = fleet.PhaseSucceeded
	deleting := overran
	deleting.Phase = fleet.PhaseDeleting
	m.OperationMoved(&deleting, &done)
	m.JobsCut("gcp", 2)
	m.JobsOrphaned("gcp", fleet.RecoveryReported, 1)
	m.JobsRetried("gcp", false, 1)
	if got := testutil.ToFloat64(m.overruns.WithLabelValues("gcp", "proceed")); got != 1 {
		t.Errorf("%v overruns, want 1", got)
	}
	if got := testutil.ToFloat64(m.operations.WithLabelValues("gcp", "delete", "succeeded")); got != 1 {
		t.Errorf("%v operations, want 1", got)
	}
	if got := testutil.ToFloat64(m.jobsCut.WithLabelValues("gcp")); got != 2 {
		t.Errorf("%v cut jobs, want 2", got)
	}
	if got := testutil.ToFloat64(m.jobsOrphaned.WithLabelValues("gcp", "reported")); got != 1 {
		t.Errorf("%v orphans, want 1", got)
	}
	if got := testutil.ToFloat64(m.jobsRetried.WithLabelValues("gcp", "orphan")); got != 1 {
		t.Errorf("%v retried, want 1", got)
	}
}

func TestTheGaugesShowWhatTheStoreSays(t *testing.T) {
	drain := fleet.Operation{Fleet: "gcp", VM: "a", Phase: fleet.PhaseDraining}
	drain.Drain.StoppedAt = noon.Add(-90 * time.Second)
	missing := fleet.VM{Ref: fleet.Ref{Fleet: "gcp", VM: "b"}, Missing: true}
	_, registry := setup(t, State{Unfinished: []fleet.Operation{drain}, VMs: []fleet.VM{missing}}, nil)
	expect(t, registry, "sluice_drain_oldest_age_seconds", `
# HELP sluice_drain_oldest_age_seconds Since when intake has been stopped for the oldest drain in progress; 0 = none.
# TYPE sluice_drain_oldest_age_seconds gauge
sluice_drain_oldest_age_seconds{fleet="gcp"} 90
`)
	expect(t, registry, "sluice_vms", `
# HELP sluice_vms VMs by state.
# TYPE sluice_vms gauge
sluice_vms{fleet="gcp",state="creating"} 0
sluice_vms{fleet="gcp",state="drained"} 0
sluice_vms{fleet="gcp",state="draining"} 1
sluice_vms{fleet="gcp",state="failed"} 0
sluice_vms{fleet="gcp",state="held"} 0
sluice_vms{fleet="gcp",state="missing"} 1
sluice_vms{fleet="gcp",state="restoring"} 0
sluice_vms{fleet="gcp",state="serving"} 1
`)
}

func TestAStoreThatCannotBeReadIsNotZero(t *testing.T) {
	_, registry := setup(t, State{}, errors.New("disk full"))
	families, err := registry.Gather()
	if err == nil {
		t.Error("the scrape does not say that the store could not be read")
	}
	for _, family := range families {
		if family.GetName() == "sluice_vms" {
			t.Error("VMs are counted without a store")
		}
	}
}

func TestCallsAreCountedByResult(t *testing.T) {
	m, _ := setup(t, State{}, nil)
	m.GitLabRequest("/runners/:id", "429")
	m.GitLabRequest("/runners/:id", "error")
	m.ProviderRequest("exec", "create", fleet.Errorf(fleet.CodeQuota, "full"))
	for _, c := range []struct {
		vec    *prometheus.CounterVec
		labels []string
	}{
		{m.gitlab, []string{"/runners/:id", "429"}},
		{m.gitlab, []string{"/runners/:id", "error"}},
		{m.provider, []string{"exec", "create", "quota"}},
	} {
		if got := testutil.ToFloat64(c.vec.WithLabelValues(c.labels...)); got != 1 {
			t.Errorf("%v: %v, want 1", c.labels, got)
		}
	}
}
