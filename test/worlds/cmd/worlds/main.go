// Command worlds runs the simulation: N worlds, from a seed on. It prints
// worlds per second; of the first that breaks a promise it prints the seed, a
// plan that was made as short as can be, and that plan's story.
//
// Exit: 0 every promise was kept, 1 one was broken, 2 usage.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"gitlab.com/sluice-runners/sluice/test/worlds"
)

type options struct {
	n, threads, enough, tries int
	seed                      uint64
	plan                      string
	tell                      bool
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 20000, "how many worlds")
	flag.Uint64Var(&o.seed, "seed", 1, "the first world's seed")
	flag.IntVar(&o.threads, "threads", runtime.GOMAXPROCS(0), "worlds at a time")
	flag.IntVar(&o.enough, "enough", 1, "stop after so many failures")
	flag.IntVar(&o.tries, "shrink", 3000, "how many plans to try when a failure is made short; 0 = leave it as it is")
	flag.StringVar(&o.plan, "plan", "", "run the one plan of this file (JSON)")
	flag.BoolVar(&o.tell, "tell", false, "tell the story of each world, kept promises or not")
	flag.Parse()
	began := time.Now() //nolint:forbidigo // how long it really takes is what is printed
	broken, err := run(os.Stdout, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "worlds:", err)
		os.Exit(2)
	}
	took := time.Since(began) //nolint:forbidigo // as above
	fmt.Fprintf(os.Stdout, "%.1f s\n", took.Seconds())
	if broken {
		os.Exit(1)
	}
}

func run(out io.Writer, o options) (broken bool, err error) {
	if o.plan != "" {
		raw, err := os.ReadFile(o.plan)
		if err != nil {
			return false, err
		}
		var p worlds.Plan
		if err := json.Unmarshal(raw, &p); err != nil {
			return false, fmt.Errorf("%s: %w", o.plan, err)
		}
		return one(out, p, o), nil
	}
	if o.tell || o.n == 1 {
		for i := range o.n {
			broken = one(out, worlds.Draw(o.seed+uint64(i)), o) || broken //nolint:gosec // not negative
		}
		return broken, nil
	}
	return many(out, o), nil
}

// one runs one plan and tells its story.
func one(out io.Writer, p worlds.Plan, o options) bool {
	got := worlds.Run(p, true)
	if o.tell || got.Violation != nil {
		fmt.Fprint(out, got.Story)
	}
	if got.Violation == nil {
		fmt.Fprintf(out, "seed %d: every promise was kept (%d steps)\n", p.Seed, got.Steps)
		return false
	}
	fmt.Fprintf(out, "seed %d: %s\n", p.Seed, got.Violation)
	return true
}

func many(out io.Writer, o options) bool {
	began := time.Now() //nolint:forbidigo // how long it really takes is what is printed
	sum := worlds.RunMany(o.seed, o.n, o.threads, o.enough)
	took := time.Since(began) //nolint:forbidigo // as above
	fmt.Fprintf(out, "%d worlds, %d operations ended, %d jobs cut as they may be, %d orphaned, %d steps: %.0f worlds/s on %d threads\n",
		sum.Worlds, sum.Ended, sum.Cut, sum.Orphaned, sum.Steps, float64(sum.Worlds)/took.Seconds(), o.threads)
	fmt.Fprintln(out, sum.Recoveries())
	for i, failed := range sum.Failed {
		fmt.Fprintf(out, "seed %d: %s\n", failed.Plan.Seed, failed.Violation)
		if i > 0 {
			continue
		}
		small := worlds.Shrink(failed.Plan, failed.Violation.Rule, o.tries)
		got := worlds.Run(small, true)
		fmt.Fprintf(out, "%s%s\nplan: %s\n", got.Story, got.Violation, small.JSON())
	}
	return len(sum.Failed) > 0
}
