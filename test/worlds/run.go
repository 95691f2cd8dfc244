package worlds

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Outcome is what came of one world.
type Outcome struct {
	Plan      Plan
	Violation *Violation // nil = every promise was kept
	Story     string     // if it was asked for
	Steps     int        // things that happened
	Ended     int        // operations that ended
	Cut       int        // jobs that we cut, as we may
	Orphaned  int        // jobs that a stop of ours orphaned
	Recovered []Recovered
}

// Recovered is how long an orphan of ours took to be queued again.
type Recovered struct {
	SinceCommit time.Duration // of its assignment, by GitLab
	SinceEnd    time.Duration // of the runner that it was assigned to, if that was later
	Hindered    bool          // GitLab, the host or the controller was away or slow meanwhile
}

// Run runs one plan. tell = with its story.
func Run(p Plan, tell bool) Outcome {
	w := newWorld(p, tell)
	o := Outcome{Plan: p, Violation: w.run(), Steps: w.steps}
	if tell {
		o.Story = w.story()
	}
	for i := range p.VMs {
		o.Ended += len(w.endedOn(i))
	}
	for _, j := range w.jobs {
		if len(j.cutBy) > 3 && j.cutBy[:3] == "us:" {
			o.Cut++
		}
		if j.orphanBy != "" {
			o.Orphaned++
		}
		if j.after.retriedBy == ours && !j.received {
			at := j.after.retriedAt
			o.Recovered = append(o.Recovered, Recovered{at - j.assigned, at - max(j.assigned, j.on.goneAt), w.hindered > j.assigned})
		}
	}
	return o
}

// Sum is what came of many worlds.
type Sum struct {
	Worlds, Steps, Ended, Cut, Orphaned int

	Recovered []Recovered
	Failed    []Outcome // at most as many as were asked for, in the order of their seeds
}

// RunMany runs the worlds of n seeds on as many threads, and stops early once
// it has found enough failures. A world is small and soon forgotten: to collect
// garbage less often makes them a third faster.
func RunMany(first uint64, n, threads, enough int) Sum {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	var next atomic.Uint64
	var failures atomic.Int64
	var mu sync.Mutex
	var sum Sum
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for failures.Load() < int64(enough) {
				i := next.Add(1) - 1
				if i >= uint64(n) { //nolint:gosec // n is not negative
					return
				}
				o := Run(Draw(first+i), false)
				if o.Violation != nil {
					failures.Add(1)
				}
				mu.Lock()
				sum.add(o)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return sum
}

func (s *Sum) add(o Outcome) {
	s.Worlds++
	s.Steps += o.Steps
	s.Ended += o.Ended
	s.Cut += o.Cut
	s.Orphaned += o.Orphaned
	s.Recovered = append(s.Recovered, o.Recovered...)
	if o.Violation != nil {
		s.Failed = append(s.Failed, o)
	}
}
