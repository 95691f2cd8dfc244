package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const namespace = "sluice"

// Options are what the series need.
type Options struct {
	Fleets  map[string]fleet.Spec
	Version string
	Clock   interface{ Now() time.Time }
	// State reads what the gauges show, at each scrape.
	State func(ctx context.Context) (State, error)
	// Routes are the path templates that the GitLab client calls.
	Routes []string
	// Providers are the kinds of providers whose calls are counted.
	Providers []string
	// Refusals are the reasons for which callers are refused.
	Refusals []string
	// Events and Results are what webhook deliveries are counted by.
	Events, Results []string
}

// State is the present: unfinished operations and the VMs' rows.
type State struct {
	Unfinished []fleet.Operation
	VMs        []fleet.VM
}

// Metrics holds the series. Its methods may be called concurrently; it is an
// engine.Observer.
type Metrics struct {
	drainDuration *prometheus.HistogramVec
	overruns      *prometheus.CounterVec
	jobsCut       *prometheus.CounterVec
	jobsOrphaned  *prometheus.CounterVec
	jobsRetried   *prometheus.CounterVec
	phaseDuration *prometheus.HistogramVec
	operations    *prometheus.CounterVec
	gitlab        *prometheus.CounterVec
	provider      *prometheus.CounterVec
	refusals      *prometheus.CounterVec
	deliveries    *prometheus.CounterVec
	disagreements *prometheus.CounterVec
	reconciled    prometheus.Gauge
}

// drainBuckets have an edge exactly at the default cap of 600 s and one just
// over it (facts/ecosystem.md section 4).
var drainBuckets = []float64{5, 30, 60, 120, 180, 300, 540, 600, 660, 900}

var phaseBuckets = []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600}

// New makes the series and registers them. Errors: those of the registerer.
func New(registerer prometheus.Registerer, o Options) (*Metrics, error) {
	m := build()
	collectors := []prometheus.Collector{
		m.drainDuration, m.overruns, m.jobsCut, m.jobsOrphaned, m.jobsRetried, m.phaseDuration, m.operations,
		m.gitlab, m.provider, m.refusals, m.deliveries, m.disagreements, m.reconciled, buildInfo(o.Version), caps(o.Fleets), gates(o.Fleets), newPresent(o),
	}
	for _, c := range collectors {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	m.zero(o)
	return m, nil
}

func build() *Metrics {
	return &Metrics{
		drainDuration: histogram("drain_duration_seconds", "From the stop of intake to the end of the drain, by how it ended.", drainBuckets, "fleet", "outcome"),
		overruns:      counter("drain_overruns_total", "Drains whose cap passed with a job running, by overrun policy.", "fleet", "policy"),
		jobsCut:       counter("jobs_cut_total", "Jobs that were ended by the removal of their VM.", "fleet"),
		jobsOrphaned:  counter("jobs_orphaned_total", "Jobs that GitLab assigned and the VM never received, by what became of them; reported and refused wait for a person.", "fleet", "result"),
		jobsRetried:   counter("jobs_retried_total", "Jobs that Sluice canceled and had run again, by what they were: orphan or cut.", "fleet", "job"),
		phaseDuration: histogram("operation_phase_duration_seconds", "How long operations stayed in a phase.", phaseBuckets, "phase"),
		operations:    counter("operations_total", "Operations that ended, by kind and outcome.", "fleet", "kind", "outcome"),
		gitlab:        counter("gitlab_requests_total", "Requests to GitLab by path template and status; code error means no answer.", "route", "code"),
		provider:      counter("provider_requests_total", "Calls to the provider by result; code ok, or the kind of failure.", "provider", "call", "code"),
		refusals:      counter("access_refusals_total", "Requests that were refused because of who sent them, by reason (docs/access.md).", "reason"),
		deliveries:    counter("webhook_deliveries_total", "Webhook deliveries by kind of event and by what became of them; the event of one that was not let in is what it claimed to be.", "event", "result"),
		disagreements: counter("evidence_disagreements_total", "Times that one witness of a drain contradicted another, by which did.", "kind"),
		reconciled: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "reconcile_last_success_timestamp_seconds",
			Help: "When the periodic look at everything last succeeded; 0 = not since the start.",
		}),
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "build_info", Help: "Always 1; the label is the version."}, []string{"version"})
	g.WithLabelValues(version).Set(1)
	return g
}

func caps(fleets map[string]fleet.Spec) prometheus.Collector {
	return configured(fleets, "drain_cap_seconds", "The fleet's cap on drains, as configured.",
		func(spec fleet.Spec) time.Duration { return spec.Drain.Cap })
}

func gates(fleets map[string]fleet.Spec) prometheus.Collector {
	return configured(fleets, "gate_online_seconds", "How long a new VM of the fleet may take to serve, as configured.",
		func(spec fleet.Spec) time.Duration { return spec.GateOnline })
}

// configured exports a limit of each fleet, so that alerts need no constant.
func configured(fleets map[string]fleet.Spec, name, help string, limit func(fleet.Spec) time.Duration) prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, []string{"fleet"})
	for of, spec := range fleets {
		g.WithLabelValues(of).Set(limit(spec).Seconds())
	}
	return g
}
