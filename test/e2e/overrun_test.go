//go:build e2e

package e2e_test

import (
	"strconv"
	"testing"
	"time"
)

// overrunCap is shorter than the jobs of these scenarios.
const overrunCap = "6s"

func TestOverrunProceedEndsTheJobCleanlyAndSaysWhichItWas(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	id := s.begin(one, longJob(5*time.Minute))
	said := s.sluice(exitJobCut, "recreate", "lab/one", "--cap", overrunCap, "--on-overrun", "proceed", "--image", "v2", "--yes", noLinger)
	s.mustMention(said, strconv.FormatInt(id, 10), "/acme/app/-/jobs/"+strconv.FormatInt(id, 10))
	j := s.awaitJob(id, time.Second, "have failed by now", finished)
	if j.FailureReason != "runner_interrupted" {
		t.Errorf("the job ended as %+v", j)
	}
	if deleted := s.deletion(one.ID); deleted.At.Before(j.FinishedAt) {
		t.Errorf("deleted at %s, before the job was ended at %s", deleted.At, j.FinishedAt)
	}
	s.mustBeNew(one, "v2")
}

func TestOverrunWaitLetsTheJobFinish(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	id := s.begin(one, longJob(30*time.Second))
	said := s.sluice(exitDone, "recreate", "lab/one", "--cap", overrunCap, "--on-overrun", "wait", "--image", "v2", "--yes", noLinger)
	s.mustMention(said, strconv.FormatInt(id, 10))
	s.mustHaveSucceeded(id)
	s.mustBeNew(one, "v2")
}

func TestOverrunAbortPutsTheVMBackToWork(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	id := s.begin(one, longJob(30*time.Second))
	s.sluice(exitFailed, "recreate", "lab/one", "--cap", overrunCap, "--on-overrun", "abort", "--image", "v2", "--yes", noLinger)
	s.awaitJob(id, 90*time.Second, "end", finished)
	s.mustHaveSucceeded(id)
	s.mustServeAgain(one)
}

// mustServeAgain fails unless the very same VM takes jobs as before the drain, and nothing
// of ours is left on it.
func (s *scene) mustServeAgain(h *host) {
	s.t.Helper()
	s.await(30*time.Second, h.Name+" to serve again, its drop-in gone", func() (bool, error) {
		return h.unit("ActiveState") == "active" && h.unit("Restart") == "always" && !h.dropIn(), nil
	})
	if now := s.machine(h.Name); now == nil || now.ID != h.ID {
		s.t.Fatalf("%s is %+v, want it untouched as %s", h.Name, now, h.ID)
	}
	id := s.queue(h, longJob(time.Second))
	s.awaitJob(id, 20*time.Second, "run after the drain", finished)
	s.mustHaveSucceeded(id)
}
