package hooks

import (
	"context"
	"slices"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// hintEvery bounds how often a fleet's drains are told to look: they look by
// themselves too, a hint only makes it sooner.
const hintEvery = time.Second

// hints tell the drains of a fleet that a job of its runner has ended. A hint
// is never evidence: the drain reads for itself (cases.md T83).
type hints struct {
	Options
	mu   sync.Mutex
	last map[string]time.Time
}

func newHints(o Options) *hints { return &hints{Options: o, last: map[string]time.Time{}} }

// fleets names those behind a runner entry.
func (h *hints) fleets(runner int64) []string {
	var names []string
	for name, spec := range h.Fleets {
		if runner != 0 && spec.RunnerID == runner {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// give wakes the drains of the runner's fleets.
func (h *hints) give(ctx context.Context, runner int64) {
	for _, name := range h.fleets(runner) {
		if !h.due(name) {
			continue
		}
		ops, err := h.Store.Operations(ctx, control.Filter{Fleet: name, Unfinished: true, Limit: 1000})
		for i := range ops {
			if err == nil && ops[i].Phase == fleet.PhaseDraining {
				err = h.Waker.Wake(ctx, ops[i].ID)
			}
		}
		if err != nil {
			h.Log.DebugContext(ctx, "drains were not told of a job's end; they look by themselves", "fleet", name, "error", err)
		}
	}
}

func (h *hints) due(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Clock.Now()
	if now.Sub(h.last[name]) < hintEvery {
		return false
	}
	h.last[name] = now
	return true
}
