package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeLimit bounds the read of the store behind a scrape.
const scrapeLimit = 5 * time.Second

// present is a collector of what is so now, read from the store at each
// scrape: nothing to keep in step, and right after a restart too.
type present struct {
	Options
	vms    *prometheus.Desc
	gauges []presentGauge
}

// presentGauge is one number for each fleet.
type presentGauge struct {
	desc *prometheus.Desc
	of   func(*ages) float64
}

func newPresent(o Options) *present {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	number := func(name, help string, of func(*ages) float64) presentGauge {
		return presentGauge{describe(name, help, "fleet"), of}
	}
	return &present{
		Options: o,
		vms:     describe("vms", "VMs by state.", "fleet", "state"),
		gauges: []presentGauge{
			number("drains_in_progress", "Drains that wait for a job now.",
				func(a *ages) float64 { return float64(a.drains) }),
			number("drain_oldest_age_seconds", "Since when intake has been stopped for the oldest drain in progress; 0 = none.",
				func(a *ages) float64 { return a.drain.Seconds() }),
			number("drain_overdue_seconds", "By how much the drain in progress that is latest has passed its own deadline; 0 = none has.",
				func(a *ages) float64 { return a.overdue.Seconds() }),
			number("operations_overrun", "Unfinished operations whose drain passed its cap with a job running.",
				func(a *ages) float64 { return float64(a.overran) }),
			number("restore_oldest_age_seconds", "For how long the oldest restore in progress has been giving intake back; 0 = none.",
				func(a *ages) float64 { return a.restore.Seconds() }),
			number("recreate_oldest_gap_seconds", "For how long the VM that is longest gone has been deleted by a recreate and is not back; 0 = none.",
				func(a *ages) float64 { return a.gap.Seconds() }),
		},
	}
}

// Describe implements prometheus.Collector.
func (p *present) Describe(out chan<- *prometheus.Desc) {
	out <- p.vms
	for _, g := range p.gauges {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector. If the store cannot be read, these
// gauges are missing from the scrape: unknown is not zero.
func (p *present) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	state, err := p.State(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(p.vms, err)
		return
	}
	seen := byFleet(state)
	now := p.Clock.Now()
	for name, spec := range p.Fleets {
		of := seen[name]
		current := agesOf(of.unfinished, now)
		for _, g := range p.gauges {
			out <- gauge(g.desc, g.of(current), name)
		}
		for word, n := range countStates(spec.VMs, of) {
			out <- gauge(p.vms, float64(n), name, string(word))
		}
	}
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}
