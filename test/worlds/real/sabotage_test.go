package real

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// sabotage is one line of Sluice made wrong, and a plan in which that matters.
type sabotage struct {
	name, file, right, wrong string
	rule                     string // the promise that must be seen broken
	plan                     plan
}

// busy is a plan with jobs on every VM all the time, and one request.
func busy(vms int, cap time.Duration, ask askPlan, acts ...act) plan {
	p := plan{
		VMs: vms, Concurrent: 1, Unavailable: 1, Asks: []askPlan{ask}, Acts: acts,
		Policy: policyPlan{Cap: cap, HardCap: cap, Reach: time.Minute, OnOverrun: string(fleet.OverrunProceed), Unreachable: string(fleet.UnreachableFail)},
	}
	for i := range 4 * vms {
		p.Jobs = append(p.Jobs, jobPlan{At: time.Duration(i) * 400 * time.Millisecond, Script: 3 * time.Second})
	}
	return p
}

var sabotages = []sabotage{
	{
		"the cap counts from the asking", "internal/engine/draining.go",
		"d.Deadline = now.Add(w.op.Request.Policy.Cap)",
		"d.Deadline = w.op.CreatedAt.Add(w.op.Request.Policy.Cap)", "cut|proof",
		busy(2, 4*time.Second, askPlan{At: 600 * time.Millisecond, Kind: fleet.KindRecreate, VMs: []int{0, 1}}),
	},
	{
		"the unit is stopped before its drop-in is in effect", "internal/runnerhost/scripts/stop.sh",
		"    write_dropin\n    must systemctl daemon-reload\n",
		"    must systemctl stop --no-block \"$unit\"\n    write_dropin\n    must systemctl daemon-reload\n", "cut",
		busy(1, time.Minute, askPlan{At: time.Second, Kind: fleet.KindRecreate, VMs: []int{0}}),
	},
	{
		"the way back leaves the drop-in", "internal/engine/restoring.go",
		"w.f.Hosts.ReleaseIntake(ctx, w.oldTarget(), w.op.Order)",
		"w.f.Hosts.Glance(ctx, w.oldTarget())", "nothing left",
		busy(1, 500*time.Millisecond, askPlan{
			At: time.Second, Kind: fleet.KindRecreate, VMs: []int{0},
			Policy: &policyPlan{Cap: 500 * time.Millisecond, HardCap: time.Second, Reach: time.Minute, OnOverrun: string(fleet.OverrunAbort), Unreachable: string(fleet.UnreachableFail)},
		}),
	},
}

// tries is how often a sabotaged server lives through its plan: the timing is
// the machine's.
const tries = 6

// The judge can find against, and finds nothing in the same plans without the
// sabotage.
func TestASabotagedServerIsCaught(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("builds Sluice anew for each sabotage: make sim-real")
	}
	all, err := runMany(context.Background(), func(i int) plan { return sabotages[i%len(sabotages)].plan }, tries*len(sabotages), 1, build(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if len(all.failed) > 0 {
		t.Errorf("found without a sabotage:\n%s", all.failed[0].report)
	}
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			sum := s.live(t, build(t, s.overlay(t)))
			if len(sum.failed) == 0 {
				t.Fatalf("not caught in %d worlds", sum.worlds)
			}
			first := sum.failed[0].broken[0]
			if rule, _, _ := strings.Cut(first, ":"); !regexp.MustCompile("^(" + s.rule + ")$").MatchString(rule) {
				t.Errorf("caught as something else:\n%s", sum.failed[0].report)
			}
			t.Logf("in %d of %d worlds: %s", len(sum.failed), sum.worlds, first)
		})
	}
}

func (s sabotage) live(t *testing.T, bin binaries) sum {
	t.Helper()
	got, err := runMany(context.Background(), func(int) plan { return s.plan }, tries, tries, bin)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// overlay writes what go build -overlay reads.
func (s sabotage) overlay(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, file := t.TempDir(), filepath.Join(root, s.file)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(raw), s.right) != 1 {
		t.Fatalf("the sabotage does not fit %s any more: %q", s.file, s.right)
	}
	wrong, list := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(raw), s.right, s.wrong, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: wrong}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}
