package worlds

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// share is how many worlds a test runs: SLUICE_WORLDS if it is set (make sim),
// else few; the suite of make test asks for 20,000.
func share(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("SLUICE_WORLDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if testing.Short() || raceDetector {
		return 200
	}
	return 2000
}

// design.md section 3, promises 1 to 5 and 7 to 9, in worlds that nobody
// thought up.
func TestEveryPromiseIsKeptInEveryWorld(t *testing.T) {
	n := share(t)
	began := time.Now() //nolint:forbidigo // how long it really takes is what is printed
	sum := RunMany(1, n, runtime.GOMAXPROCS(0), 1)
	took := time.Since(began) //nolint:forbidigo // as above
	if sum.Worlds == 0 || sum.Ended < sum.Worlds || n >= 200 && (sum.Cut == 0 || sum.Orphaned == 0) {
		t.Fatalf("nothing much happened: %+v", sum)
	}
	t.Logf("%d worlds, %d operations ended, %d jobs cut as they may be, %d orphaned: %.0f worlds/s",
		sum.Worlds, sum.Ended, sum.Cut, sum.Orphaned, float64(sum.Worlds)/took.Seconds())
	for _, failed := range sum.Failed {
		small := Shrink(failed.Plan, failed.Violation.Rule, 1000)
		got := Run(small, true)
		t.Errorf("seed %d: %s\n%s\n%s\nplan: %s", failed.Plan.Seed, failed.Violation, got.Story, got.Violation, small.JSON())
	}
}

func TestASeedAlwaysTellsTheSameStory(t *testing.T) {
	for seed := range uint64(60) {
		first, again := Run(Draw(seed), true), Run(Draw(seed), true)
		if first.Story != again.Story || first.Steps != again.Steps {
			t.Fatalf("seed %d told two stories:\n%s\n---\n%s", seed, first.Story, again.Story)
		}
		if quiet := Run(Draw(seed), false); quiet.Steps != first.Steps {
			t.Fatalf("seed %d goes another way when nobody listens: %d steps, not %d", seed, quiet.Steps, first.Steps)
		}
	}
}

// The first worlds that broke a promise, each with what was wrong. They are
// kept promises now.
func TestWhatOnceWentWrongGoesWell(t *testing.T) {
	for seed, what := range map[uint64]string{
		165:    "a create that was given up succeeded after its operation had ended",
		898:    "a skipped drain deleted a host that unregisters the fleet's token",
		822:    "a job of a runner that a person had started was called cut",
		480:    "jobs that had ended before a power cut were called cut",
		1646:   "a VM that was overlooked at preflight was never looked at",
		2334:   "a second restore moved the first watch's window",
		105461: "a skipped drain recorded no jobs while GitLab was down",
		100575: "what a later operation had adopted was removed as a stray",
		101760: "jobs that had ended long ago were recorded as cut",
		207466: "a queued start brought the runner back before the delete",
		207148: "a job of the new VM under the old system_id was called cut",
		207358: "the orphan of a stop that was superseded twice was forgotten",
		308186: "the orphan of a stop under a waiver was forgotten",
		309581: "a job that a skipped drain cut on an unreachable host was not recorded",
		410622: "the orphan of a VM that was replaced behind our back was forgotten",
		406111: "a job on a host that was merely out of reach was called cut",
	} {
		if got := Run(Draw(seed), false); got.Violation != nil {
			t.Errorf("seed %d (%s): %s", seed, what, got.Violation)
		}
	}
}

// A plan is shrunk to what its failure needs: here, by a world that is broken
// on purpose, one act.
func TestAFailingPlanIsMadeShort(t *testing.T) {
	p := Draw(7)
	p.Acts = append(p.Acts, Act{Do: "no such thing", At: time.Minute})
	small := Shrink(p, "plan", 500)
	if len(small.Acts) != 1 || len(small.Jobs) != 0 || len(small.Asks) > 1 || len(small.VMs) != 1 {
		t.Errorf("left: %s", small.JSON())
	}
	if v := Run(small, false).Violation; v == nil || v.Rule != "plan" {
		t.Errorf("the short plan fails otherwise: %v", v)
	}
}

func BenchmarkWorlds(b *testing.B) {
	for i := range b.N {
		Run(Draw(uint64(i)), false) //nolint:gosec // not negative
	}
}
