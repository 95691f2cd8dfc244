//go:build e2e

package e2e_test

import (
	"strconv"
	"testing"
	"time"
)

// TestWhatPeopleDoToTheRunnerInMidDrainIsSeenAndAccountedFor has four people at four VMs.
func TestWhatPeopleDoToTheRunnerInMidDrainIsSeenAndAccountedFor(t *testing.T) {
	s := newScene(t, "stopped", "undone", "termed", "killed")
	stopped, undone, termed, killed := s.host("stopped"), s.host("undone"), s.host("termed"), s.host("killed")
	s.serve()
	jobs, ops := map[*host]int64{}, map[*host]string{}
	for h, d := range map[*host]time.Duration{stopped: 40 * time.Second, undone: 55 * time.Second, termed: 5 * time.Minute, killed: 5 * time.Minute} {
		jobs[h] = s.begin(h, longJob(d))
		ops[h] = s.recreates(h.Name)
	}
	for h := range ops {
		h.await("deactivating")
	}
	// With the drop-in in effect a plain stop is no SIGTERM: it joins the one on its way.
	stopped.root("systemctl daemon-reload; systemctl stop --no-block gitlab-runner")
	// Without the drop-in its own 45 s are left to the runner: it must be put back in time.
	undone.root("rm /run/systemd/system/gitlab-runner.service.d/zz-sluice-drain.conf; systemctl daemon-reload")
	termed.root("systemctl kill --signal=TERM --kill-whom=main gitlab-runner")
	killed.root("systemctl kill --signal=KILL --kill-whom=main gitlab-runner")

	s.mustEndWith(s.follow(ops[stopped], exitDone), "drained")
	s.mustHaveSucceeded(jobs[stopped])
	s.mustBeNew(stopped, "v2")

	op := s.follow(ops[termed], exitDone)
	s.mustEndWith(op, "drained")
	j := s.awaitJob(jobs[termed], time.Second, "have ended by now", finished)
	if j.FailureReason != "runner_interrupted" {
		t.Errorf("the job of the runner that got a SIGTERM ended as %+v", j)
	}
	s.mustBeNew(termed, "v2")

	s.mustEndWith(s.follow(ops[undone], exitDone), "drained")
	s.mustHaveSucceeded(jobs[undone])
	s.mustBeNew(undone, "v2")

	// Nobody tells GitLab of that job's end: it is told of by its link.
	s.mustEndWith(s.follow(ops[killed], exitJobCut), "drained", jobs[killed])
	s.mustMention(s.sluice(exitDone, "op", "show", ops[killed]), "cut by others")
	s.mustBeNew(killed, "v2")
}

// GitLab shows it running, its container is left, and no runner knows of it any more.
func TestAJobWhoseRunnerWasKilledBeforeTheDrainIsReported(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.serve()
	dead := s.begin(one, longJob(5*time.Minute))
	one.root("systemctl kill --signal=KILL --kill-whom=main gitlab-runner")
	s.await(20*time.Second, "systemd to start the runner again", func() (bool, error) {
		return one.unit("NRestarts") == "1" && one.unit("ActiveState") == "active", nil
	})
	job := s.begin(one, longJob(15*time.Second))
	op := s.recreates("one")
	s.mustEndWith(s.follow(op, exitDone), "drained")
	s.mustHaveSucceeded(job)
	s.mustBeNew(one, "v2")
	s.awaitSaid(orphanLook, "/acme/app/-/jobs/"+strconv.FormatInt(dead, 10), "op", "list", "--output", "json")
}

// Case T26: a runner that systemd starts again and again is open whenever one looks.
func TestARunnerThatCrashesInALoopIsStoppedForGood(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	one.root(`
		mkdir -p /etc/systemd/system/gitlab-runner.service.d
		printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStartPre=/bin/false\nRestartSec=2\n' > /etc/systemd/system/gitlab-runner.service.d/10-crash.conf
		systemctl daemon-reload
		systemctl kill --signal=KILL --kill-whom=main gitlab-runner`)
	s.await(20*time.Second, "the runner to crash in a loop", func() (bool, error) {
		return one.unit("SubState") == "auto-restart" && one.unit("NRestarts") > "1", nil
	})
	s.serve()
	op := s.asks("drain", "lab/one")
	s.mustEndWith(s.follow(op, exitDone), "drained")
	restarts := one.unit("NRestarts")
	if got := one.unit("ActiveState"); got != "inactive" && got != "failed" {
		t.Errorf("after the drain the runner is %s", got)
	}
	s.sluice(exitDone, "recreate", "lab/one", "--image", "v2", "--yes")
	if deleted := s.deletion(one.ID); deleted.Runner["MainPID"] != "0" || deleted.Runner["ActiveState"] == "activating" {
		t.Errorf("the delete found the runner as %v, after %s restarts", deleted.Runner, restarts)
	}
	s.mustBeNew(one, "v2")
}

// facts/runner-host.md: while systemd re-executes, it answers empty, and empty is unknown.
func TestASystemdThatReexecutesAgainAndAgainIsNotTakenForAStoppedRunner(t *testing.T) {
	// In a shell: podman itself cannot make a container's group in that moment.
	s := newExecutorScene(t, "shell")
	one := s.host("one")
	s.serve()
	job := s.begin(one, longJob(25*time.Second))
	one.root(`systemd-run --quiet --unit=restless sh -c 'while :; do systemctl daemon-reexec; echo >> /run/reexecutions; sleep 1; done'`)
	op := s.recreates("one")
	s.awaitJob(job, time.Minute, "end", finished)
	if times, _ := strconv.Atoi(one.root("wc -l < /run/reexecutions")); times < 5 {
		t.Errorf("systemd re-executed itself %d times, want some", times)
	}
	s.mustEndWith(s.follow(op, exitDone), "drained")
	s.mustHaveOutlived(one, job)
	s.mustBeNew(one, "v2")
}

// facts/runner-host.md: an orderly shutdown waits for a runner that drains, and the next
// boot knows nothing of the drain.
func TestAnOrderlyRebootInMidDrainLetsTheJobEndAndIsStoppedAgain(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.serve()
	job := s.begin(one, longJob(15*time.Second))
	op := s.recreates("one")
	one.await("deactivating")
	after := one.reboot()
	s.mustHaveSucceeded(job)
	s.mustEndWith(s.follow(op, exitDone), "drained")
	if deleted := s.deletion(one.ID); deleted.Runner["BootID"] != after || deleted.Runner["MainPID"] != "0" {
		t.Errorf("the delete found the runner as %v, want it down in boot %s", deleted.Runner, after)
	}
	s.mustBeNew(one, "v2")
}
