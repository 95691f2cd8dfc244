package metrics

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
)

// BenchmarkScrape prints what a scrape costs with 50 fleets of 20 VMs, a
// tenth of them in a drain: milliseconds over HTTP (bar 50), processor
// time of both ends, and series (bar
// 8,000), and the size of the page.
func BenchmarkScrape(b *testing.B) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	fleets, state := crowd(50, 20)
	_, err := New(registry, Options{
		Fleets: fleets, Version: "bench", Clock: still(noon), Routes: gitlab.Routes(), Providers: []string{"exec"},
		State: func(context.Context) (State, error) { return state, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	var size int64
	before := cpuTime(b)
	for b.Loop() {
		size = scrape(b, server.URL)
	}
	b.ReportMetric((cpuTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/scrape")
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/scrape")
	b.ReportMetric(float64(series(b, registry)), "series")
	b.ReportMetric(float64(size)/1e3, "kB")
}

// crowd is many fleets, every tenth VM of which drains.
func crowd(fleets, vms int) (map[string]fleet.Spec, State) {
	specs, state := map[string]fleet.Spec{}, State{}
	for f := range fleets {
		spec := fleet.Spec{Name: fmt.Sprintf("fleet-%02d", f), Drain: fleet.DefaultDrainPolicy()}
		for v := range vms {
			name := fmt.Sprintf("runner-%02d", v)
			spec.VMs = append(spec.VMs, name)
			ref := fleet.Ref{Fleet: spec.Name, VM: name}
			state.VMs = append(state.VMs, fleet.VM{Ref: ref, Intake: fleet.IntakeServing})
			if v%10 == 0 {
				op := fleet.Operation{ID: spec.Name + name, Fleet: spec.Name, VM: name, Kind: fleet.KindRecreate, Phase: fleet.PhaseDraining}
				op.Drain.StoppedAt = noon.Add(-time.Minute)
				state.Unfinished = append(state.Unfinished, op)
			}
		}
		specs[spec.Name] = spec
	}
	return specs, state
}

// cpuTime is the processor time of this process: the machine may be busy.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// scrape reads the page as Prometheus does.
func scrape(b *testing.B, url string) int64 {
	b.Helper()
	response, err := http.Get(url) //nolint:gosec,noctx // a benchmark's own server
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	size, err := io.Copy(io.Discard, response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s, %v", response.Status, err)
	}
	return size
}

// series counts what Prometheus stores: every bucket is one.
func series(b *testing.B, registry *prometheus.Registry) int {
	b.Helper()
	families, err := registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch {
			case metric.GetHistogram() != nil:
				n += len(metric.GetHistogram().GetBucket()) + 3 // +Inf, _sum, _count
			case metric.GetSummary() != nil:
				n += len(metric.GetSummary().GetQuantile()) + 2
			default:
				n++
			}
		}
	}
	return n
}
