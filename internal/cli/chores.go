package cli

import (
	"context"
	"fmt"
	"strings"
)

// untilFollowedUp stays a while, alone, for the chores of the operations:
// nobody else would do them now. What is left when linger has passed, or at
// Ctrl-C, is done by the next run or by a server.
func (w *watcher) untilFollowedUp(ctx context.Context, interrupts <-chan struct{}) error {
	until := w.Now().Add(w.linger)
	for said := false; ; said = true {
		open, err := w.openChores(ctx)
		if err != nil || len(open) == 0 {
			return err
		}
		stop := !w.Now().Before(until)
		if !stop && !said {
			fmt.Fprintf(w.Stderr, "sluice: the work has ended; stays up to %s for %s; Ctrl-C is fine, the rest is left to the next run or `sluice serve`\n",
				short(w.linger.String()), list(open))
		}
		if !stop {
			if stop, err = w.pause(ctx, interrupts); err != nil {
				return err
			}
		}
		if stop {
			fmt.Fprintf(w.Stderr, "sluice: %s is left to the next run or to `sluice serve` (--linger 4m sees it to the end)\n", list(open))
			return nil
		}
	}
}

// openChores names the chores that have not ended.
func (w *watcher) openChores(ctx context.Context) ([]string, error) {
	var open []string
	for i := range w.ops {
		op, err := w.Operation(ctx, w.ops[i].Id)
		if err != nil {
			return nil, err
		}
		if op.Chores == nil {
			continue
		}
		for _, c := range *op.Chores {
			if c.FinishedAt == nil {
				open = append(open, choreName(c.Kind))
			}
		}
	}
	return open, nil
}

// choreName is what a person calls a kind of chore.
func choreName(kind string) string {
	switch kind {
	case "orphan_watch":
		return "the watch for orphaned jobs"
	case "deregister":
		return "the removal of the old manager"
	default:
		return "a follow-up (" + kind + ")"
	}
}

// list joins names, each once.
func list(names []string) string {
	var once []string
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			once = append(once, name)
		}
	}
	return strings.Join(once, " and ")
}
