//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// A host that is lost in mid-drain, by its cable or because it hangs, looks the same from
// outside.

// lost takes a host away, or gives it back.
type lost func(s *scene, h *host, away bool) error

var losses = map[string]lost{
	"hung":  func(s *scene, h *host, away bool) error { return s.World.Hang(h.Machine, away) },
	"cable": func(s *scene, h *host, away bool) error { return s.World.Partition(s.ctx, h.Machine, away) },
}

// shortReach is a reach deadline for these scenes.
const shortReach = "reach_deadline: 8s"

// loseInMidDrain recreates a VM and takes it away while its job is waited for.
func (s *scene) loseInMidDrain(one *host, away lost, spec simgitlab.JobSpec) (op string, job int64) {
	s.t.Helper()
	s.serve()
	job = s.begin(one, spec)
	op = s.recreates(one.Name)
	one.await("deactivating")
	s.must(away(s, one, true))
	return op, job
}

// Case T30.
func TestAHostThatIsLostInMidDrainAndFoundAgainIsDrainedOn(t *testing.T) {
	t.Parallel()
	for name, away := range losses {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "one")
			one := s.host("one")
			op, job := s.loseInMidDrain(one, away, longJob(25*time.Second))
			s.awaitSaid(30*time.Second, "the host cannot be reached", "op", "show", op)
			s.must(away(s, one, false))
			s.mustEndWith(s.follow(op, exitDone), "drained")
			j := s.mustHaveSucceeded(job)
			if deleted := s.deletion(one.ID); deleted.At.Before(j.FinishedAt) {
				t.Errorf("deleted at %s, before its job's result was in at %s", deleted.At, j.FinishedAt)
			}
			s.mustBeNew(one, "v2")
		})
	}
}

// Case T30.
func TestAHostThatIsLostForTooLongIsNotDeletedAndServesWhenItIsFoundAgain(t *testing.T) {
	t.Parallel()
	for name, away := range losses {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "one")
			s.configure(stage.Config{Fleet: fleetName, VMs: []string{"one"}, Drain: shortReach})
			one := s.host("one")
			op, job := s.loseInMidDrain(one, away, longJob(25*time.Second))
			s.awaitPhase(op, client.OperationPhaseRestoring, time.Minute)
			s.must(away(s, one, false))
			s.follow(op, exitFailed)
			s.mustNotBeDeleted(one)
			s.awaitJob(job, 60*time.Second, "end", finished)
			s.mustHaveSucceeded(job)
			s.mustServeAgain(one)
		})
	}
}

// Case T30.
func TestAHostThatIsLostForTooLongIsReplacedWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	for name, away := range losses {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "one")
			s.configure(stage.Config{Fleet: fleetName, VMs: []string{"one"}, Drain: shortReach + ", unreachable: proceed"})
			one := s.host("one")
			op, job := s.loseInMidDrain(one, away, longJob(5*time.Minute))
			s.mustEndWith(s.follow(op, exitJobCut), "unreachable", job)
			s.mustBeNew(one, "v2")
		})
	}
}
