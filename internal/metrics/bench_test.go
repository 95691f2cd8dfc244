package metrics

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

const (
	benchFleets = 50
	benchVMs    = 20
	benchBusy   = 3 // VMs of each fleet that an operation works on
)

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

// crowd is 50 fleets with 20 VMs each, three of them at work.
func crowd() (specs map[string]fleet.Spec, state State) {
	specs = map[string]fleet.Spec{}
	for f := range benchFleets {
		spec := fleet.Spec{Name: fmt.Sprintf("fleet-%02d", f), Drain: fleet.DefaultDrainPolicy(), GateOnline: 10 * time.Minute}
		for v := range benchVMs {
			ref := fleet.Ref{Fleet: spec.Name, VM: fmt.Sprintf("runner-%02d", v)}
			spec.VMs = append(spec.VMs, ref.VM)
			state.VMs = append(state.VMs, fleet.VM{Ref: ref, Incarnation: fleet.Incarnation{Instance: "i-" + ref.VM}, Intake: fleet.IntakeServing})
			if v < benchBusy {
				state.Unfinished = append(state.Unfinished, fleet.Operation{
					ID: "op-" + spec.Name + ref.VM, Fleet: spec.Name, VM: ref.VM, Kind: fleet.KindRecreate, Phase: fleet.PhaseDraining,
					CreatedAt: noon, Drain: fleet.DrainState{StoppedAt: noon, Deadline: noon},
				})
			}
		}
		specs[spec.Name] = spec
	}
	return specs, state
}

// stored puts the state into a journal and yields what reads it from there.
func stored(b *testing.B, state State) func(context.Context) (State, error) {
	b.Helper()
	s, err := store.Open(b.Context(), store.Options{Path: filepath.Join(b.TempDir(), "a.db"), Clock: wall{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	for i := range state.VMs {
		err = errors.Join(err, s.SaveVM(b.Context(), &state.VMs[i]))
	}
	_, insertErr := s.Insert(b.Context(), state.Unfinished, control.Key{}, func([]control.Inserted) error { return nil })
	if err = errors.Join(err, insertErr); err != nil {
		b.Fatal(err)
	}
	return func(ctx context.Context) (State, error) {
		ops, err := s.Unfinished(ctx)
		if err != nil {
			return State{}, err
		}
		vms, err := s.Census(ctx)
		return State{Unfinished: ops, VMs: vms}, err
	}
}

func endpoint(tb testing.TB, specs map[string]fleet.Spec, read func(context.Context) (State, error)) http.Handler {
	tb.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if _, err := New(registry, Options{
		Fleets: specs, Version: "bench", Clock: wall{}, State: read, Routes: gitlab.Routes(), Providers: []string{"exec"},
		Events: hooks.Events(), Results: hooks.Results(),
	}); err != nil {
		tb.Fatal(err)
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func scrape(tb testing.TB, handler http.Handler) *httptest.ResponseRecorder {
	tb.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "/metrics", http.NoBody))
	if answer.Code != http.StatusOK {
		tb.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	return answer
}

func countSeries(answer *httptest.ResponseRecorder) (n int) {
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// processorTime is what this process has used: on a machine that does other
// things too, the wall says less.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// seriesLimit is what a scrape of 50 fleets may hold.
const seriesLimit = 8000

func TestFiftyFleetsStayWithinTheirSeries(t *testing.T) {
	specs, state := crowd()
	handler := endpoint(t, specs, func(context.Context) (State, error) { return state, nil })
	if n := countSeries(scrape(t, handler)); n > seriesLimit || n < benchFleets*100 {
		t.Errorf("%d series, at most %d", n, seriesLimit)
	}
}

// BenchmarkScrapeOfFiftyFleets prints the time of a scrape of 50 fleets with a
// journal of 1,000 VMs behind it, and its series (bar: 50 ms, 8,000).
func BenchmarkScrapeOfFiftyFleets(b *testing.B) {
	specs, state := crowd()
	handler := endpoint(b, specs, stored(b, state))
	var answer *httptest.ResponseRecorder
	began := processorTime(b)
	for b.Loop() {
		answer = scrape(b, handler)
	}
	used := processorTime(b) - began
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/scrape")
	b.ReportMetric(float64(used.Microseconds())/float64(b.N)/1000, "cpu-ms/scrape")
	b.ReportMetric(float64(countSeries(answer)), "series")
}
