//go:build e2e

package e2e_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// newExecutorScene is a scene whose runners run their jobs by an executor.
func newExecutorScene(t *testing.T, executor string) *scene {
	t.Helper()
	s := newStage(t)
	set := &s.World.Settings
	set.RunnerConfig = strings.Replace(set.RunnerConfig, `"custom"`, strconv.Quote(executor), 1)
	s.must(s.World.Save())
	s.configure(stage.Config{Fleet: fleetName, VMs: []string{"one"}})
	s.boot("one")
	return s
}

// facts/runner-host.md: with KillMode=control-group a SIGQUIT ends the job's own
// processes, too. Here the job is a child of the runner, and there is no podman to ask.
func TestAJobOfTheShellExecutorSurvivesADrainWhateverTheUnitsKillMode(t *testing.T) {
	s := newExecutorScene(t, "shell")
	one := s.host("one")
	one.root(`
		mv /usr/bin/podman /usr/bin/podman.gone
		mkdir -p ` + unitDir + `
		printf '[Service]\nKillMode=control-group\nTimeoutStopSec=5\nRestart=always\n' > ` + unitDir + `/90-local.conf
		mkdir -p /run/systemd/system/gitlab-runner.service.d
		printf '[Service]\nRestart=on-success\nTimeoutStopSec=4\n' > /run/systemd/system/gitlab-runner.service.d/95-local.conf
		systemctl daemon-reload`)
	s.serve()
	job := s.begin(one, longJob(20*time.Second))
	op := s.recreates("one")
	one.await("deactivating")
	s.mustMention(s.awaitSaid(20*time.Second, "the runner process still runs", "op", "show", op), strconv.FormatInt(job, 10))
	s.mustEndWith(s.follow(op, exitDone), "drained")
	s.mustHaveOutlived(one, job)
	s.mustBeNew(one, "v2")
}

func TestAContainerOfTheDockerExecutorTellsTheJobByItsLabel(t *testing.T) {
	s := newExecutorScene(t, "docker")
	one := s.host("one")
	s.serve()
	job := s.begin(one, longJob(20*time.Second))
	name := one.run("podman ps --format '{{.Names}}'")
	if !strings.HasPrefix(name, "runner-") || !strings.Contains(name, "-project-") || !strings.Contains(name, "-concurrent-0-") {
		t.Fatalf("the container is named %q", name)
	}
	op := s.recreates("one")
	one.await("deactivating")
	s.awaitSaid(20*time.Second, "containers: of job "+strconv.FormatInt(job, 10), "op", "show", op)
	s.mustEndWith(s.follow(op, exitDone), "drained")
	s.mustHaveSucceeded(job)
	s.mustBeNew(one, "v2")
}

func TestAContainerThatOutlivesTheRunnerIsGivenItsGraceAndReported(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.serve()
	job := s.begin(one, longJob(5*time.Second))
	one.run("podman run --detach --quiet --name forgotten --network none --pull never localhost/job:latest sleep 2000000")
	op := s.recreates("one")
	s.mustEndWith(s.follow(op, exitDone), "dirty")
	s.mustHaveSucceeded(job)
	s.mustMention(s.sluice(exitDone, "op", "show", op), "forgotten")
	deleted := s.deletion(one.ID)
	if gap := deleted.At.Sub(exitedAt(t, deleted)); gap < 30*time.Second || deleted.Runner["Containers"] != "1" {
		t.Errorf("deleted %s after the runner's end, with the runner as %v", gap, deleted.Runner)
	}
	s.mustBeNew(one, "v2")
}
