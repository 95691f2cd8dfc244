//go:build e2e

package e2e_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// These scenarios wait longest, so their file comes first.

// orphanLook is how long the orphan watch may take to report (design.md section 12).
const orphanLook = 60 * time.Second

func TestOldManagerIsRemovedAndTheTokenLives(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	// The watch for orphaned jobs comes first: its last look is 3 min after the exit.
	s.start("recreate", "lab/one", "--image", "v2", "--linger", "5m", "--yes").wait(6*time.Minute, exitDone)
	now := s.mustBeNew(one, "v2")
	managers, err := s.GitLab.Managers(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(managers) != 1 || managers[0].SystemID != now.systemID {
		t.Errorf("managers are %+v, want %s alone", managers, now.systemID)
	}
	id := s.queue(now, longJob(time.Second))
	s.awaitJob(id, 20*time.Second, "run under the same token", finished)
	s.mustHaveSucceeded(id)
}

func TestJobAssignedInTheInstantOfTheStopIsReportedWithItsLink(t *testing.T) {
	s := newScene(t, "one", "two")
	one := s.host("one")
	s.host("two")
	s.serve()
	// The answer of an assignment stays on its way until the stop has cut the request.
	if err := s.GitLab.Switch(s.ctx, simgitlab.Switches{AssignDelay: time.Minute}); err != nil {
		t.Fatal(err)
	}
	orphan := s.queue(one, longJob(time.Second))
	s.awaitJob(orphan, 10*time.Second, "be assigned", func(j simgitlab.JobRecord) bool { return j.SystemID != "" })
	s.sluice(exitDone, "recreate", "lab/one", "--image", "v2", "--yes")
	if err := s.GitLab.Switch(s.ctx, simgitlab.Switches{}); err != nil {
		t.Fatal(err)
	}
	link := "/acme/app/-/jobs/" + strconv.FormatInt(orphan, 10)
	said := s.awaitSaid(orphanLook, link, "op", "list", "--output", "json")
	s.mustMention(said, link)
	if j, _ := s.GitLab.Job(s.ctx, orphan); j.Verdict != simgitlab.VerdictOrphaned || j.CanceledBy != "" {
		t.Errorf("the orphan is %+v, want it reported and untouched", j)
	}
}

func TestJobTakenAfterAnUndrainIsLeftAlone(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.serve()
	s.sluice(exitDone, "drain", "lab/one", "--yes")
	s.sluice(exitDone, "undrain", "lab/one", "--yes")
	s.mustServeAgain(one)
	// It is still silent when the orphan watch of the drain looks, as an orphan would be.
	id := s.queue(one, simgitlab.JobSpec{Script: []string{"sleep 45"}, AfterScript: []string{"true"}})
	s.awaitJob(id, 70*time.Second, "end", finished)
	s.mustHaveSucceeded(id)
	link := "/acme/app/-/jobs/" + strconv.FormatInt(id, 10)
	if said := s.sluice(exitDone, "op", "list", "--output", "json"); strings.Contains(said, link) {
		t.Errorf("the job was reported:\n%s", said)
	}
}
