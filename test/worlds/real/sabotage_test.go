package real

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sabotage is one line of Sluice made wrong.
type sabotage struct {
	name, file, right, wrong string
	rule                     string // the promise that must be seen broken
}

var sabotages = []sabotage{
	{
		"the cap counts from the asking", "internal/engine/draining.go",
		"d.Deadline = now.Add(w.op.Request.Policy.Cap)",
		"d.Deadline = w.op.CreatedAt.Add(w.op.Request.Policy.Cap)", "cut|proof",
	},
	{
		"the unit is stopped before its drop-in is in effect", "internal/runnerhost/scripts/stop.sh",
		"    write_dropin\n    must systemctl daemon-reload\n",
		"    must systemctl stop --no-block \"$unit\"\n    write_dropin\n    must systemctl daemon-reload\n", "cut",
	},
	{
		"the way back leaves the drop-in", "internal/engine/restoring.go",
		"w.f.Hosts.ReleaseIntake(ctx, w.oldTarget(), w.op.Order)",
		"w.f.Hosts.Glance(ctx, w.oldTarget())", "nothing left",
	},
}

// The judge can find against: each sabotaged server is caught within 200 worlds.
func TestASabotagedServerIsCaught(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("builds Sluice anew for each sabotage: make sim-real")
	}
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			sum, err := runMany(context.Background(), 1, 200, sideBySide, 1, build(t, s.overlay(t)))
			if err != nil {
				t.Fatal(err)
			}
			if len(sum.failed) == 0 {
				t.Fatalf("not caught in %d worlds", sum.worlds)
			}
			first := sum.failed[0].broken[0]
			if rule, _, _ := strings.Cut(first, ":"); !regexp.MustCompile("^(" + s.rule + ")$").MatchString(rule) {
				t.Errorf("caught as something else:\n%s", sum.failed[0].report)
			}
			t.Logf("after %d worlds, seed %d: %s", sum.worlds, sum.failed[0].plan.Seed, first)
		})
	}
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
