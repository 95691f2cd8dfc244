//go:build e2e

package e2e_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// A host that is lost in mid-drain, by its cable or because it hangs, looks the same from
// outside.

// losses take a host of their name away, or give it back.
var losses = map[string]func(s *scene, h *host, away bool) error{
	"hung":  func(s *scene, h *host, away bool) error { return s.World.Hang(h.Machine, away) },
	"cable": func(s *scene, h *host, away bool) error { return s.World.Partition(s.ctx, h.Machine, away) },
}

// lost is a VM that is recreated and was taken away while its job was waited for.
type lost struct {
	*host
	op  string
	job int64
}

func (l lost) away(is bool) {
	l.scene.t.Helper()
	l.scene.must(losses[l.Name](l.scene, l.host, is))
}

// loseInMidDrain makes a fleet with a VM for each kind of loss, and loses them.
func loseInMidDrain(t *testing.T, drain string, spec simgitlab.JobSpec) (*scene, []lost) {
	t.Helper()
	names := slices.Sorted(maps.Keys(losses))
	s := newScene(t, names...)
	s.configure(stage.Config{Fleet: fleetName, VMs: names, Drain: drain})
	s.serve()
	var all []lost
	for _, name := range names {
		h := s.host(name)
		all = append(all, lost{host: h, job: s.queue(h, spec)})
	}
	for i, l := range all {
		s.awaitJob(l.job, 15*time.Second, "begin", func(j simgitlab.JobRecord) bool { return j.Heard })
		all[i].op = s.recreates(l.Name)
	}
	for _, l := range all {
		l.await("deactivating")
		l.away(true)
	}
	return s, all
}

const (
	longReach  = "reach_deadline: 10m"
	shortReach = "reach_deadline: 8s"
)

// Case T30.
func TestAHostThatIsLostInMidDrainAndFoundAgainIsDrainedOn(t *testing.T) {
	s, all := loseInMidDrain(t, longReach, longJob(25*time.Second))
	for _, l := range all {
		s.awaitSaid(40*time.Second, "the host cannot be reached", "op", "show", l.op)
		l.away(false)
	}
	for _, l := range all {
		s.mustEndWith(s.follow(l.op, exitDone), "drained")
		s.mustHaveOutlived(l.host, l.job)
		s.mustBeNew(l.host, "v2")
	}
}

// Case T30.
func TestAHostThatIsLostForTooLongIsNotDeletedAndServesWhenItIsFoundAgain(t *testing.T) {
	s, all := loseInMidDrain(t, shortReach, longJob(25*time.Second))
	for _, l := range all {
		s.awaitPhase(l.op, client.OperationPhaseRestoring, time.Minute)
		l.away(false)
	}
	for _, l := range all {
		s.follow(l.op, exitFailed)
		s.mustNotBeDeleted(l.host)
		s.awaitJob(l.job, time.Minute, "end", finished)
		s.mustHaveSucceeded(l.job)
		s.mustServeAgain(l.host)
	}
}

// Case T30.
func TestAHostThatIsLostForTooLongIsReplacedWhereThePolicySaysSo(t *testing.T) {
	s, all := loseInMidDrain(t, shortReach+", unreachable: proceed", longJob(5*time.Minute))
	for _, l := range all {
		s.mustEndWith(s.follow(l.op, exitJobCut), "unreachable", l.job)
		s.mustBeNew(l.host, "v2")
	}
}
