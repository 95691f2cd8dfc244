package worlds

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
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

// firstSeed is SLUICE_SEED if it is set (make sim SEED=…), so that many worlds can
// be run in parts; else 1.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("SLUICE_SEED")
	if text == "" {
		return 1
	}
	first, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// design.md section 3, promises 1 to 5 and 7 to 9, in worlds that nobody
// thought up.
func TestEveryPromiseIsKeptInEveryWorld(t *testing.T) {
	n, first := share(t), firstSeed(t)
	began := time.Now() //nolint:forbidigo // how long it really takes is what is printed
	sum := RunMany(first, n, runtime.GOMAXPROCS(0), 1)
	took := time.Since(began) //nolint:forbidigo // as above
	if sum.Worlds == 0 || sum.Ended < sum.Worlds || n >= 200 && (sum.Cut == 0 || sum.Orphaned == 0) {
		t.Fatalf("nothing much happened: %+v", sum)
	}
	t.Logf("%d worlds from seed %d on, %d operations ended, %d jobs cut as they may be, %d orphaned: %.0f worlds/s",
		sum.Worlds, first, sum.Ended, sum.Cut, sum.Orphaned, float64(sum.Worlds)/took.Seconds())
	t.Log(sum.Recoveries())
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

// Plans that broke a promise once, as short as they were made then. Each keeps
// it now, and its name says what happens in it.
func TestWhatOnceWentWrongGoesWell(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var p Plan
			if err := json.Unmarshal(raw, &p); err != nil {
				t.Fatal(err)
			}
			if got := Run(p, true); got.Violation != nil {
				t.Errorf("%s\n%s", got.Story, got.Violation)
			}
		})
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
