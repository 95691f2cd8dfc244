package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// GitLab is asked too much just when a skipped drain wants the name of the entry.
// Its id, read on the host, is enough to ask whose jobs are cut and orphaned. Seed
// 484529 of the worlds.
func TestTheEntryIdReadOnTheHostIsEnoughToTellOfASkippedDrainsOrphan(t *testing.T) {
	w := enginetest.New("a").OwnEntries()
	old := w.VM("a")
	w.Refuse["runner"] = []error{fleet.Errorf(fleet.CodeRateLimited, "429 Too Many Requests")}
	w.Fences["stop"] = func() { w.Orphan("a", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()}) }
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	w.Run(3 * time.Hour)
	op := ended(t, w, id, fleet.PhaseSucceeded, "")
	says(t, w, "[warning] the VM's runner entry is not known: 429 Too Many Requests")
	if op.Old.Entry != old.Entry || told(w, fleet.FactOrphan)+told(w, fleet.FactCut) != 1 {
		t.Errorf("entry %d; told %d times\n%s", op.Old.Entry, told(w, fleet.FactOrphan), w.Story())
	}
	for _, entry := range w.RemovedEntries {
		if entry != old.Entry {
			t.Errorf("removed entry %d", entry)
		}
	}
	if strings.Contains(w.Story(), "the runner entry of instance "+old.ID+" was never read") {
		t.Errorf("it was read on its host\n%s", w.Story())
	}
	closed(t, w)
}
