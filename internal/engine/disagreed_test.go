package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// What sluice_evidence_disagreements_total counts is in the row, or is a move of
// it: each kind can come about.
func TestEachContradictionOfTheEvidenceLeavesItsMark(t *testing.T) {
	scenes := map[fleet.Disagreement]func(*enginetest.World){
		fleet.DisagreedGitLab:     func(w *enginetest.World) { w.Orphan("a", fleet.Job{ID: 9, StartedAt: w.Now()}) },
		fleet.DisagreedContainers: func(w *enginetest.World) { w.VM("a").Leftovers = []fleet.Container{{Name: "left"}} },
	}
	for _, kind := range fleet.Disagreements() {
		w := enginetest.New("a")
		scenes[kind](w)
		id := w.Ask(fleet.KindRecreate, "a")
		w.Run(time.Hour)
		if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || op.Drain.Disagreed != kind {
			t.Errorf("%s: %s with %q\n%s", kind, op.Phase, op.Drain.Disagreed, w.Story())
		}
	}
	w := enginetest.New("a") // proof_lost
	w.Fences["check"] = func() { w.Advance(4 * time.Second); w.Reboot("a") }
	w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	if moves := strings.Join(w.Meter.Moves, " "); !strings.Contains(moves, "deleting draining") {
		t.Errorf("no proof was lost: %s", moves)
	}
}
