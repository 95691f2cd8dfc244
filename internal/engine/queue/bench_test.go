package queue_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkEnqueueToStart prints how long a wake-up takes to a look: of a new
// operation, and of one that rests.
func BenchmarkEnqueueToStart(b *testing.B) {
	for _, resting := range []bool{false, true} {
		b.Run(fmt.Sprintf("resting=%t", resting), func(b *testing.B) {
			s := freshStore(b)
			l := newLooker(forever)
			q := start(b, s, l, nil)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				id := ask(b, s, strconv.Itoa(i))[0]
				looks := 1
				if resting {
					must(b, q.Wake(b.Context(), id))
					eventually(b, "it rests", patience, func() bool {
						return jobs(b, s, "kind = 'vm_operation' and state <> 'scheduled'") == 0 && l.count(id) == 1
					})
					looks = 2
				}
				b.StartTimer()
				began := time.Now()
				must(b, q.Wake(b.Context(), id))
				eventually(b, "a look", patience, func() bool { return l.count(id) == looks })
				took = append(took, l.at(id, looks).Sub(began))
			}
			report(b, took)
		})
	}
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[(len(took)*99)/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkManyAtRestart prints the start with 500 unfinished operations.
func BenchmarkManyAtRestart(b *testing.B) {
	s := freshStore(b)
	names := make([]string, 500)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	ids := ask(b, s, names...)
	for b.Loop() {
		l := newLooker(forever)
		q := newQueue(b, s, l, nil)
		must(b, q.Start(context.Background()))
		eventually(b, "all move", 30*time.Second, func() bool {
			return !slices.ContainsFunc(ids, func(id string) bool { return l.count(id) == 0 })
		})
		b.StopTimer()
		stop(b, q)
		b.StartTimer()
	}
}

// BenchmarkIdle prints what a queue with nothing to do costs in ten seconds
// (bar for the whole controller: 3 % of a core, 60 MB).
func BenchmarkIdle(b *testing.B) {
	s := freshStore(b)
	start(b, s, newLooker(forever), nil)
	runtime.GC()
	for b.Loop() {
		before, began := cpu(b), time.Now()
		<-time.After(10 * time.Second)
		b.ReportMetric(100*float64(cpu(b)-before)/float64(time.Since(began)), "%-of-a-core")
		b.ReportMetric(residentMB(b), "MB-resident")
	}
}

func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func residentMB(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	must(b, err)
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kb), "kB")), 64)
			must(b, err)
			return n / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
