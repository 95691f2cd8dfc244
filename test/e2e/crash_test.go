//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
)

func TestKilledInMidDrainGoesOnWhereItWas(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	id := s.begin(one, longJob(25*time.Second))
	first := s.serve()
	s.sluice(exitDone, "recreate", "lab/one", "--image", "v2", "--detach", "--yes")
	one.await("deactivating")
	first.kill()
	s.serve()
	s.awaitNew(one)
	s.mustHaveSucceeded(id)
	s.mustBeNew(one, "v2")
}

func TestKilledInTheMiddleOfALongCreateMakesOneVM(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	if err := s.World.SetWeather(machines.Weather{CreateDelay: 8 * time.Second, LateCreate: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	first := s.serve()
	s.sluice(exitDone, "recreate", "lab/one", "--image", "v2", "--detach", "--yes")
	s.await(time.Minute, "the create to be on its way", func() (bool, error) {
		return len(s.visitsOf("create")) > 0, nil
	})
	first.kill()
	s.serve()
	s.awaitNew(one)
	s.mustBeNew(one, "v2")
	if creates := s.visitsOf("create"); len(creates) != 1 {
		t.Errorf("%d creates, want 1: %+v", len(creates), creates)
	}
}

// visitsOf lists the beginnings of a verb's calls.
func (s *scene) visitsOf(verb string) []machines.Visit {
	s.t.Helper()
	visits, err := s.World.Visits()
	if err != nil {
		s.t.Fatal(err)
	}
	var found []machines.Visit
	for _, v := range visits {
		if v.Verb == verb && !v.Ended {
			found = append(found, v)
		}
	}
	return found
}

// awaitNew waits until the VM is another machine and its operation has ended.
func (s *scene) awaitNew(old *host) {
	s.t.Helper()
	s.await(2*time.Minute, old.Name+" to be another machine", func() (bool, error) {
		m := s.machine(old.Name)
		return m != nil && m.ID != old.ID && m.State == machines.StateRunning, nil
	})
	s.awaitSaid(time.Minute, "succeeded", "op", "list")
}
