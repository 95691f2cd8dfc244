package real

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sideBySide is how many worlds there are at a time: they mostly wait.
const sideBySide = 24

// binaries are the programs of a world.
type binaries struct{ sluice, cloudcall string }

// build makes the programs, the server with an overlay ("" = none).
func build(t *testing.T, overlay string) binaries {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := binaries{sluice: filepath.Join(dir, "sluice"), cloudcall: filepath.Join(dir, "cloudcall")}
	for out, what := range map[string]string{bin.sluice: "./server", bin.cloudcall: "./test/worlds/real/cloudcall"} {
		args := []string{"build", "-buildvcs=false", "-o", out}
		if overlay != "" && out == bin.sluice {
			args = append(args, "-overlay", overlay)
		}
		cmd := exec.CommandContext(t.Context(), "go", append(args, what)...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s does not build: %v\n%s", what, err, text)
		}
	}
	return bin
}

// usage is the processor time of the worlds and of the Sluices in them.
func usage() string {
	var own, children syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil || syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) != nil {
		return ""
	}
	sum := func(r syscall.Rusage) float64 {
		return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
	}
	return fmt.Sprintf("processor time: worlds %.0f s, Sluices and their commands %.0f s", sum(own), sum(children))
}

// setting reads a number from the environment (make sim-real).
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// design.md section 3, promises 1 to 5 and 7 to 9, kept by the whole of Sluice
// whose processes are killed.
func TestEveryPromiseIsKeptInRealTime(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("builds Sluice and lets worlds live in real time: make sim-real")
	}
	n, first := setting(t, "SLUICE_REAL_WORLDS", 24), setting(t, "SLUICE_SEED", 1)
	bin := build(t, "")
	began := time.Now()
	s, err := runMany(context.Background(), func(i int) plan { return draw(uint64(first + i)) }, n, 3, bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(usage())
	t.Logf("%d worlds in %.0f s, up to %d side by side, the longest %.0f s: %d processes killed, %d operations ended, %d jobs run, %d cut as they may be, %d orphaned, %d chores pending",
		s.worlds, time.Since(began).Seconds(), sideBySide, s.longest.Seconds(), s.kills, s.ended, s.ran, s.cut, s.orphaned, s.pending)
	for _, failed := range s.failed {
		t.Error(failed.report)
	}
	if n >= 24 && (s.kills < n/4 || s.ended < n/2 || s.ran < n) {
		t.Error("nothing much happened")
	}
}

// A failing world is named by its seed: the seed must give its plan again.
func TestASeedAlwaysGivesTheSamePlan(t *testing.T) {
	different := map[string]bool{}
	for seed := range uint64(200) {
		first, again := draw(seed).String(), draw(seed).String()
		if first != again {
			t.Fatalf("seed %d gave two plans", seed)
		}
		different[strings.Replace(first, strconv.FormatUint(seed, 10), "", 1)] = true
	}
	if len(different) < 190 {
		t.Errorf("200 seeds gave %d plans", len(different))
	}
}
