package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// scrapeLimit bounds the read of the store behind a scrape.
const scrapeLimit = 5 * time.Second

// present is a collector of what is so now, read from the store at each
// scrape: nothing to keep in step, and right after a restart too.
type present struct {
	Options
	drains, oldest, vms *prometheus.Desc
}

func newPresent(o Options) *present {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &present{
		Options: o,
		drains:  describe("drains_in_progress", "Drains that wait for a job now.", "fleet"),
		oldest:  describe("drain_oldest_age_seconds", "Since when intake has been stopped for the oldest drain in progress; 0 = none.", "fleet"),
		vms:     describe("vms", "VMs by state.", "fleet", "state"),
	}
}

// Describe implements prometheus.Collector.
func (p *present) Describe(out chan<- *prometheus.Desc) {
	out <- p.drains
	out <- p.oldest
	out <- p.vms
}

// Collect implements prometheus.Collector. If the store cannot be read, the
// three gauges are missing from the scrape: unknown is not zero.
func (p *present) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	state, err := p.State(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(p.drains, err)
		return
	}
	now := p.Clock.Now()
	for name, spec := range p.Fleets {
		drains, oldest := draining(state.Unfinished, name, now)
		out <- gauge(p.drains, float64(drains), name)
		out <- gauge(p.oldest, oldest.Seconds(), name)
		for word, n := range countStates(spec, state) {
			out <- gauge(p.vms, float64(n), name, string(word))
		}
	}
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func draining(ops []fleet.Operation, fleetName string, now time.Time) (n int, oldest time.Duration) {
	for i := range ops {
		op := &ops[i]
		if op.Fleet != fleetName || op.Phase != fleet.PhaseDraining {
			continue
		}
		n++
		if at := op.Drain.StoppedAt; !at.IsZero() {
			oldest = max(oldest, now.Sub(at))
		}
	}
	return n, oldest
}

// countStates counts the fleet's members; one that has no row yet serves.
func countStates(spec fleet.Spec, state State) map[fleet.State]int {
	counts := map[fleet.State]int{}
	for _, word := range fleet.States() {
		counts[word] = 0
	}
	rows := map[string]fleet.VM{}
	for _, vm := range state.VMs {
		if vm.Fleet == spec.Name {
			rows[vm.VM] = vm
		}
	}
	ops := map[string]*fleet.Operation{}
	for i := range state.Unfinished {
		if op := &state.Unfinished[i]; op.Fleet == spec.Name {
			ops[op.VM] = op
		}
	}
	for _, name := range spec.VMs {
		counts[fleet.StateOf(rows[name], ops[name])]++
	}
	return counts
}
