//go:build e2e

package e2e_test

import (
	"testing"
	"time"
)

func TestParallelDrainsAllAtOnce(t *testing.T) {
	s := newScene(t, "one", "two", "three")
	hosts := []*host{s.host("one"), s.host("two"), s.host("three")}
	jobs := s.beginOnEach(hosts, 45*time.Second)
	recreate := s.start("recreate", "lab/one", "lab/two", "lab/three", "--parallel", "3", "--image", "v2", "--yes", noLinger)
	s.await(45*time.Second, "all three to drain at once", func() (bool, error) {
		return s.notServing(hosts) == 3, nil
	})
	recreate.wait(2*time.Minute, exitDone)
	s.mustAllBeDone(hosts, jobs)
}

func TestWithoutParallelOneVMAfterAnother(t *testing.T) {
	s := newScene(t, "one", "two", "three")
	hosts := []*host{s.host("one"), s.host("two"), s.host("three")}
	jobs := s.beginOnEach(hosts, 6*time.Second)
	recreate := s.start("recreate", "lab/one", "lab/two", "lab/three", "--image", "v2", "--yes", noLinger)
	most := 0
	s.await(3*time.Minute, "the command to end", func() (bool, error) {
		most = max(most, s.notServing(hosts))
		return !recreate.running(), nil
	})
	recreate.wait(time.Second, exitDone)
	if most != 1 {
		t.Errorf("%d VMs did not serve at once, want 1", most)
	}
	s.mustAllBeDone(hosts, jobs)
}

func (s *scene) beginOnEach(hosts []*host, d time.Duration) []int64 {
	s.t.Helper()
	var jobs []int64
	for _, h := range hosts {
		jobs = append(jobs, s.queue(h, longJob(d)))
	}
	for i, h := range hosts {
		s.awaitContainer(h, jobs[i])
	}
	return jobs
}

// notServing counts the VMs of these names whose runner does not take jobs now.
func (s *scene) notServing(hosts []*host) int {
	s.t.Helper()
	n := 0
	for _, h := range hosts {
		now := s.machine(h.Name)
		if now == nil || (&host{Machine: now, scene: s}).unit("ActiveState") != "active" {
			n++
		}
	}
	return n
}

func (s *scene) mustAllBeDone(hosts []*host, jobs []int64) {
	s.t.Helper()
	for i, h := range hosts {
		s.mustHaveSucceeded(jobs[i])
		s.mustBeNew(h, "v2")
		s.measure(h)
	}
}
