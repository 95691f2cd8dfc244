package fleet

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// stride is how many members of the cross product are passed over. It shares
// no factor with any of the lists, so that every pair of words still meets.
func stride() int {
	switch {
	case raceDetector:
		return 1009
	case testing.Short():
		return 53
	default:
		return 1
	}
}

// axes are the lists whose product is walked for each look at a host.
type axes struct {
	gitlab, provider []string
	gitlabOf         map[string]*GitLabReading
	providerOf       map[string]*ProviderReading
}

func newAxes() axes {
	a := axes{gitlabOf: gitlabReadings(), providerOf: providerReadings()}
	a.gitlab = slices.Sorted(maps.Keys(a.gitlabOf))
	a.provider = slices.Sorted(maps.Keys(a.providerOf))
	return a
}

var (
	caps         = []string{"not begun", "inside", "at the cap", "at the hard cap"}
	sinces       = []string{"no", "short", "long"}
	bools        = []bool{false, true}
	overruns     = []Overrun{OverrunProceed, OverrunWait, OverrunAbort}
	unreachables = []Unreachable{UnreachableFail, UnreachableProceed}
	unprovens    = []Unproven{UnprovenAbort, UnprovenProceed}
)

func (a axes) size() int {
	return len(a.gitlab) * 2 * len(a.provider) * len(caps) * len(overruns) * len(unreachables) * len(unprovens) *
		len(sinces) * len(sinces) * len(sinces) * 2
}

// pick takes the next digit of a mixed-radix number.
func pick[T any](n *int, list []T) T {
	value := list[*n%len(list)]
	*n /= len(list)
	return value
}

func (a axes) world(h hostWords, n int) worldWords {
	return worldWords{
		host:        h,
		gitlab:      pick(&n, a.gitlab),
		noGitLab:    pick(&n, bools),
		provider:    pick(&n, a.provider),
		cap:         pick(&n, caps),
		overrun:     pick(&n, overruns),
		unreachable: pick(&n, unreachables),
		unproven:    pick(&n, unprovens),
		silence:     pick(&n, sinces),
		stopped:     pick(&n, sinces),
		left:        pick(&n, sinces),
		again:       pick(&n, bools),
	}
}

func TestDecideIsTheTableOverTheWholeCrossProduct(t *testing.T) {
	t.Parallel()
	a, hosts, step := newAxes(), hostProduct(), stride()
	var walked, wrong atomic.Int64
	var rows [11]atomic.Int64
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				reading := hosts[i].reading()
				// Begin where the stride over the whole product would fall.
				for n := (step - i*a.size()%step) % step; n < a.size(); n += step {
					w := a.world(hosts[i], n)
					d := a.check(t, &w, reading, &wrong)
					rows[d.Row].Add(1)
					walked.Add(1)
				}
			}
		})
	}
	for i := range hosts {
		next <- i
	}
	close(next)
	workers.Wait()
	for row := 1; row <= 10; row++ {
		if rows[row].Load() == 0 {
			t.Errorf("no member of the product reaches row %d", row)
		}
	}
	t.Logf("Decide: %d of %d combinations walked, %d wrong", walked.Load(), len(hosts)*a.size(), wrong.Load())
}

func (a axes) check(t *testing.T, w *worldWords, host *HostReading, wrong *atomic.Int64) Decision {
	s := w.snapshot(readings{host: host, gitlab: a.gitlabOf[w.gitlab], provider: a.providerOf[w.provider]})
	got := Decide(&s)
	want, promise := oracle(w), broken(w, got)
	if sameDecision(want, got) && promise == "" {
		return got
	}
	if wrong.Add(1) <= 10 {
		t.Errorf("%+v:\n  want %s\n  got  %s\n  broken promise: %q", *w, want.short(), got.short(), promise)
	}
	return got
}
