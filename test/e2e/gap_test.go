//go:build e2e

package e2e_test

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
)

// gaps are the times from a runner process's end to the delete of its VM, over all
// scenarios that let the drain take its course.
var gaps struct {
	sync.Mutex
	all []time.Duration
}

// measure notes the gap of a VM that was deleted.
func (s *scene) measure(h *host) {
	s.t.Helper()
	deleted := s.deletion(h.ID)
	gap := deleted.At.Sub(exitedAt(s.t, deleted))
	gaps.Lock()
	defer gaps.Unlock()
	gaps.all = append(gaps.all, gap)
}

// reportGaps prints the number of design.md section 12; it judges nothing.
func reportGaps(w io.Writer) {
	gaps.Lock()
	defer gaps.Unlock()
	if len(gaps.all) == 0 {
		return
	}
	slices.Sort(gaps.all)
	n := len(gaps.all)
	_, _ = fmt.Fprintf(w, "process exit → delete issued: p50 %s, max %s (n=%d; includes the provider command's start)\n",
		gaps.all[n/2].Round(time.Millisecond), gaps.all[n-1].Round(time.Millisecond), n)
}

// exitedAt yields when the runner's process had ended, as systemd noted it, from what the
// delete found.
func exitedAt(t *testing.T, v machines.Visit) time.Time {
	t.Helper()
	at, err := time.Parse("Mon 2006-01-02 15:04:05.000000 MST", v.Runner["ExecMainExitTimestamp"])
	if err != nil {
		t.Fatalf("the delete found the runner as %v: %v", v.Runner, err)
	}
	return at
}
