package simhost_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// The rows of facts/runner-host.md, "What each way of stopping does to a
// running job". Time limits of 45 s are shortened by TimeoutStopSec=.

const unit = "gitlab-runner.service"

// short makes a stop's time limit pass within the test.
func short(limit string, more ...string) func(*simhost.Options) {
	return func(o *simhost.Options) {
		o.UnitText = "[Service]\nExecStart=/usr/bin/gitlab-runner run --config /etc/gitlab-runner/config.toml\nUser=fedora\n" +
			"Restart=always\nRestartSec=100ms\nTimeoutStopSec=" + limit + "\n" + strings.Join(more, "\n") + "\n"
	}
}

func TestAPlainStopFailsTheJobAsInterrupted(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(time.Minute, time.Second)
	w.Systemd().Stop(unit)
	w.eventually("the job's end", func() bool { return w.record(id).Status == "failed" })
	rec := w.record(id)
	if rec.FailureReason != "runner_interrupted" || rec.Verdict != simgitlab.VerdictCut || rec.AfterScriptEnded {
		t.Errorf("record = %+v", rec)
	}
	w.eventually("the unit's end", func() bool { return w.show("ActiveState") == "inactive" })
	if w.show("Result") != "success" || len(w.Containers()) != 0 {
		t.Errorf("result %s, containers %v", w.show("Result"), w.Containers())
	}
}

func TestASlowCleanupOrphansTheJobAtTheShutdownTimeout(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) { o.Timing.Interrupt = time.Minute })
	w.configure("shutdown_timeout = 0", "shutdown_timeout = 1")
	id := w.job(time.Minute, 0)
	w.Systemd().Stop(unit)
	w.eventually("the unit's end", func() bool { return w.show("ActiveState") == "failed" })
	if w.show("Result") != "exit-code" || w.record(id).Status != "running" || len(w.Containers()) != 1 {
		t.Errorf("result %s, job %s, containers %v", w.show("Result"), w.record(id).Status, w.Containers())
	}
}

func TestAbortAtTheTimeLimitOrphansTheJob(t *testing.T) {
	for name, settings := range map[string][]string{
		"SIGTERM with a slow cleanup": nil,
		"only KillSignal=SIGQUIT":     {"KillSignal=SIGQUIT"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := short("300ms", settings...)
			w := newWorld(t, func(o *simhost.Options) { limit(o); o.Timing.Interrupt = time.Minute })
			id := w.job(time.Minute, 0)
			w.Systemd().Stop(unit)
			w.eventually("the unit's end", func() bool { return w.show("ActiveState") == "failed" })
			if w.show("Result") != "timeout" || w.record(id).Status != "running" || len(w.Containers()) != 1 {
				t.Errorf("result %s, job %s, containers %v", w.show("Result"), w.record(id).Status, w.Containers())
			}
		})
	}
}

func TestSIGQUITLetsTheJobEndAndRestartTakesTheNext(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(300*time.Millisecond, 200*time.Millisecond)
	old := w.show("MainPID")
	for range 3 { // two or three times: as once
		w.Systemd().Kill(unit, syscall.SIGQUIT, true)
	}
	next := w.gitlab.Enqueue(simgitlab.JobSpec{Duration: time.Minute})
	w.eventually("the job's end", func() bool { return w.verdict(id) == simgitlab.VerdictSucceeded })
	if !w.record(id).AfterScriptEnded {
		t.Error("after_script did not run")
	}
	if w.show("MainPID") == old && w.verdict(next) != simgitlab.VerdictPending {
		t.Error("a process that is quitting took a job")
	}
	w.eventually("the restart", func() bool { return w.show("NRestarts") == "1" && w.show("MainPID") != old })
	w.eventually("the next job", func() bool { return w.verdict(next) == simgitlab.VerdictRunning })
}

func TestAWrongStopAfterSIGQUITUndoesTheDrain(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(time.Minute, 0)
	w.Systemd().Kill(unit, syscall.SIGQUIT, true)
	w.Systemd().Stop(unit)
	w.eventually("the cut", func() bool { return w.verdict(id) == simgitlab.VerdictCut })
	if !w.logged("Starting forceful shutdown") {
		t.Error("the journal does not tell of a wrong signal")
	}
}

func TestAnIdleRunnerQuitsAtOnceAndItsOpenRequestIsCut(t *testing.T) {
	w := newWorld(t, nil)
	w.eventually("a held request", func() bool { return w.gitlab.Counts()["POST /jobs/request"] > 0 })
	w.dropIn(graceful...)
	w.Systemd().Stop(unit)
	w.eventually("the unit's end", func() bool { return w.show("ActiveState") == "inactive" })
	id := w.gitlab.Enqueue(simgitlab.JobSpec{})
	if w.verdict(id) != simgitlab.VerdictPending || w.show("Result") != "success" {
		t.Errorf("job %s, result %s", w.verdict(id), w.show("Result"))
	}
}

func TestSIGQUITBeforeTheHandlersAreThereIsAFailure(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) { o.Timing.Handlers = time.Minute })
	w.dropIn(graceful...)
	w.Systemd().Stop(unit)
	w.eventually("the unit's end", func() bool { return w.show("ActiveState") == "failed" })
	if w.show("Result") != "exit-code" {
		t.Errorf("result %s", w.show("Result"))
	}
}

func TestSIGKILLOrphansTheJobAndLeavesItsContainer(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(time.Minute, 0)
	w.Systemd().Kill(unit, syscall.SIGKILL, true)
	w.eventually("the auto-restart", func() bool { return w.show("SubState") == "auto-restart" || w.show("NRestarts") == "1" })
	next := w.gitlab.Enqueue(simgitlab.JobSpec{Duration: time.Minute})
	w.eventually("the next job beside the old container", func() bool { return len(w.Containers()) == 2 })
	if w.record(id).Status != "running" || w.record(next).Status != "running" {
		t.Errorf("jobs %s, %s", w.record(id).Status, w.record(next).Status)
	}
}

func TestConcurrentZeroIsFatalAndARestartLoop(t *testing.T) {
	w := newWorld(t, nil)
	w.configure("concurrent = 1", "concurrent = 0")
	w.Systemd().Kill(unit, syscall.SIGQUIT, true)
	w.eventually("a restart loop", func() bool { return w.show("NRestarts") >= "3" })
}

func TestControlGroupKillsAShellExecutorsJobAndMixedDoesNot(t *testing.T) {
	for mode, want := range map[string]simgitlab.Verdict{
		"control-group": simgitlab.VerdictFailed, "mixed": simgitlab.VerdictSucceeded, "process": simgitlab.VerdictSucceeded,
	} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, func(o *simhost.Options) { o.Executor = "shell" })
			w.dropIn("KillSignal=SIGQUIT", "TimeoutStopSec=infinity", "KillMode="+mode)
			id := w.job(300*time.Millisecond, 0)
			w.Systemd().Stop(unit)
			w.eventually("the job's end", func() bool { return w.verdict(id) == want })
		})
	}
}

func TestShutdownTimeoutHasNoEffectUnderSIGQUIT(t *testing.T) {
	w := newWorld(t, nil)
	w.configure("shutdown_timeout = 0", "shutdown_timeout = 1")
	w.dropIn(graceful...)
	id := w.job(1500*time.Millisecond, 0)
	w.Systemd().Stop(unit)
	w.eventually("the job's end", func() bool { return w.verdict(id) == simgitlab.VerdictSucceeded })
}

// configure changes config.toml and starts the runner anew with it.
func (w *world) configure(old, now string) {
	w.t.Helper()
	text, err := w.Files().ReadFile("/etc/gitlab-runner/config.toml", "root")
	if err != nil || !strings.Contains(string(text), old) {
		w.t.Fatalf("config.toml: %v\n%s", err, text)
	}
	w.Files().Put("/etc/gitlab-runner/config.toml", strings.Replace(string(text), old, now, 1), "fedora", 0o600)
	if now == "concurrent = 0" {
		return // the next start is fatal
	}
	<-w.Systemd().Stop(unit).Done()
	w.Systemd().Start(unit)
	w.eventually("the runner runs again", func() bool { return w.show("SubState") == "running" })
}
