//go:build e2e

package e2e_test

import (
	"flag"
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

var drains = flag.Int("drains", 2, "how often the same VM is recreated to measure exit → delete")

// With -drains 30 on an idle machine this is the number of design.md section 12.
func TestTheSameVMIsRecreatedAgainAndAgain(t *testing.T) {
	s := newScene(t, "one")
	s.serve()
	for range *drains {
		one := s.host("one")
		job := s.begin(one, longJob(2*time.Second))
		s.sluice(exitDone, "recreate", "lab/one", "--image", "v2", "--yes")
		s.mustHaveSucceeded(job)
		s.mustBeNew(one, "v2")
		s.measure(one)
	}
}

// measure notes the gap of a VM that was deleted.
func (s *scene) measure(h *host) {
	s.t.Helper()
	deleted := s.deletion(h.ID)
	gap := deleted.At.Sub(exitedAt(s.t, deleted))
	s.t.Logf("%s: process exit → delete issued in %s", h.Name, gap.Round(time.Millisecond))
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
	_, _ = fmt.Fprintf(w, "process exit → delete issued: p50 %s, p99 %s, max %s (n=%d; includes the provider command's start)\n",
		gaps.all[n/2].Round(time.Millisecond), gaps.all[(n*99+99)/100-1].Round(time.Millisecond), gaps.all[n-1].Round(time.Millisecond), n)
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
