//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

func TestCreateAndDelete(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	said := s.sluice(exitRefused, "create", "lab/one", "--yes")
	s.mustMention(said, "lab/one", "--recreate")

	id := s.begin(one, longJob(6*time.Second))
	s.sluice(exitDone, "create", "lab/one", "--recreate", "--image", "v2", "--yes")
	s.mustHaveSucceeded(id)
	second := s.mustBeNew(one, "v2")

	id = s.begin(second, longJob(6*time.Second))
	s.sluice(exitDone, "delete", "lab/one", "--yes")
	s.mustHaveSucceeded(id)
	s.mustBeGone("one", second)

	s.sluice(exitDone, "create", "lab/one", "--yes")
	third := s.host("one")
	id = s.begin(third, longJob(5*time.Minute))
	s.sluice(exitJobCut, "delete", "lab/one", "--no-drain", "--yes")
	s.mustBeGone("one", third)
	if err := s.GitLab.Gone(s.ctx, third.systemID); err != nil {
		t.Fatal(err)
	}
	if j, _ := s.GitLab.Job(s.ctx, id); j.AfterScriptEnded {
		t.Errorf("with --no-drain the job still ended as %+v", j)
	}
}

func (s *scene) mustBeGone(name string, h *host) {
	s.t.Helper()
	if m := s.machine(name); m != nil {
		s.t.Errorf("%s is still there: %+v", name, m)
	}
	if left, err := s.World.Remains(h.ID); err != nil || len(left) > 0 {
		s.t.Errorf("left of %s: %v, %v", name, left, err)
	}
}

func TestWithoutGitLabTokenHostEvidenceDecides(t *testing.T) {
	s := newScene(t, "one")
	s.configure(stage.Config{Fleet: fleetName, VMs: []string{"one"}, NoGitLab: true})
	one := s.host("one")
	id := s.begin(one, longJob(8*time.Second))
	said := s.sluice(exitDone, "recreate", "lab/one", "--image", "v2", "--yes")
	s.mustMention(said, "GitLab")
	s.mustHaveSucceeded(id)
	s.mustBeNew(one, "v2")
}

func TestWithNeitherTokenItRefuses(t *testing.T) {
	s := newScene(t, "one")
	s.configure(stage.Config{Fleet: fleetName, VMs: []string{"one"}, NoGitLab: true, NoRunner: true})
	one := s.host("one")
	said := s.sluice(exitRefused, "recreate", "lab/one", "--yes")
	s.mustMention(said, "token")
	s.mustServeAgain(one)
}
