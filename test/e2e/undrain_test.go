//go:build e2e

package e2e_test

import (
	"regexp"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

func TestUndrainInMidJobLosesNothing(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.serve()
	id := s.begin(one, longJob(25*time.Second))
	s.sluice(exitDone, "drain", "lab/one", "--detach", "--yes")
	one.await("deactivating")
	undrain := s.start("undrain", "lab/one", "--yes")
	undrain.wait(time.Minute, exitDone)
	s.awaitJob(id, 40*time.Second, "end", finished)
	s.mustHaveSucceeded(id)
	s.mustServeAgain(one)
}

func TestCancelInMidDrainGivesIntakeBack(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.serve()
	id := s.begin(one, longJob(25*time.Second))
	said := s.sluice(exitDone, "drain", "lab/one", "--detach", "--yes")
	one.await("deactivating")
	s.sluice(exitDone, "op", "cancel", operationIn(t, said))
	s.awaitJob(id, 40*time.Second, "end", finished)
	s.mustHaveSucceeded(id)
	s.mustServeAgain(one)
}

// operationIn finds the operation's id in what a command said.
func operationIn(t *testing.T, said string) string {
	t.Helper()
	id := regexp.MustCompile(`\bop-[0-9a-z]{12}\b`).FindString(said)
	if id == "" {
		t.Fatalf("no operation is named in:\n%s", said)
	}
	return id
}

func TestDrainStaysUntilUndrained(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	id := s.begin(one, longJob(5*time.Second))
	s.sluice(exitDone, "drain", "lab/one", "--yes", noLinger)
	s.mustHaveSucceeded(id)
	waiting := s.queue(one, longJob(time.Second))
	if got := one.unit("ActiveState"); got != "inactive" {
		t.Errorf("after the drain the runner is %s", got)
	}
	if j, _ := s.GitLab.Job(s.ctx, waiting); j.Verdict != simgitlab.VerdictPending {
		t.Errorf("a drained VM took a job: %+v", j)
	}
	s.sluice(exitDone, "undrain", "lab/one", "--yes")
	s.mustServeAgain(one)
	s.awaitJob(waiting, 20*time.Second, "run after the undrain", finished)
	s.mustHaveSucceeded(waiting)
}

func TestUnitWithItsOwnStopSettingsIsDrainedAllTheSame(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	// An administrator's drop-in, in /etc and sorted late; an ExecStop that must not run.
	one.root(`
		mkdir -p /etc/systemd/system/gitlab-runner.service.d
		printf '[Service]\nExecStop=/usr/bin/touch /run/exec-stop-ran\nKillSignal=SIGTERM\nKillMode=control-group\nTimeoutStopSec=3\nRestart=always\n' \
			> /etc/systemd/system/gitlab-runner.service.d/90-local.conf
		systemctl daemon-reload`)
	id := s.begin(one, longJob(25*time.Second))
	drain := s.start("drain", "lab/one", "--yes", noLinger)
	one.await("deactivating")
	drain.wait(time.Minute, exitDone)
	s.mustHaveSucceeded(id)
	if one.root("test -e /run/exec-stop-ran && echo ran || :") == "ran" {
		t.Error("the unit's ExecStop ran")
	}
	if got := one.unit("Result"); got != "success" {
		t.Errorf("Result=%s, want success", got)
	}
}

func TestPersonsStartInMidDrainIsStoppedAgain(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	id := s.begin(one, longJob(25*time.Second))
	drain := s.start("recreate", "lab/one", "--image", "v2", "--yes", noLinger)
	one.await("deactivating")
	one.root("systemctl start --no-block gitlab-runner") // runs anew when the job is done
	drain.wait(2*time.Minute, exitDone)
	s.mustHaveSucceeded(id)
	s.mustBeNew(one, "v2")
}

func TestLoginThatIsNotTheRunnersUserSeesTheRunnersContainers(t *testing.T) {
	s := newScene(t, "one")
	s.configure(stage.Config{Fleet: fleetName, VMs: []string{"one"}, User: stage.Sluice})
	one := s.host("one")
	id := s.begin(one, longJob(25*time.Second))
	recreate := s.start("recreate", "lab/one", "--image", "v2", "--yes", noLinger)
	one.await("deactivating")
	recreate.wait(2*time.Minute, exitDone)
	s.mustHaveSucceeded(id)
	s.mustBeNew(one, "v2")
}
