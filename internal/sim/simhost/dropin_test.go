package simhost_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// facts/runner-host.md, "Runtime drop-in", "Undrain", "What a job's end looks
// like", "The job in flight", "Identity".

func TestADropInActsAtTheReloadAndAStopIsThenGraceful(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(400*time.Millisecond, 100*time.Millisecond)
	pid := w.show("MainPID")
	w.Files().Put("/run/systemd/system/gitlab-runner.service.d/50-drain.conf", "[Service]\n"+strings.Join(graceful, "\n")+"\n", "root", 0o644)
	if w.show("KillSignal") != "15" || w.show("NeedDaemonReload") != "yes" {
		t.Error("a written file alone changed the unit")
	}
	for range 3 { // the whole sequence may be replayed blindly
		w.Systemd().Reload()
		w.Systemd().Stop(unit)
	}
	for name, want := range map[string]string{
		"KillSignal": "3", "TimeoutStopUSec": "infinity", "Restart": "no", "KillMode": "mixed",
		"ActiveState": "deactivating", "SubState": "stop-sigterm", "MainPID": pid,
	} {
		if got := w.show(name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	if jobs := w.Systemd().Jobs(); len(jobs) != 1 || jobs[0].Kind != "stop" || jobs[0].Step != "running" {
		t.Errorf("jobs = %+v", jobs)
	}
	second := w.gitlab.Enqueue(simgitlab.JobSpec{})
	w.eventually("the unit's end", func() bool { return w.show("ActiveState") == "inactive" })
	if w.verdict(id) != simgitlab.VerdictSucceeded || w.verdict(second) != simgitlab.VerdictPending || w.show("NRestarts") != "0" {
		t.Errorf("jobs %s, %s; NRestarts %s", w.verdict(id), w.verdict(second), w.show("NRestarts"))
	}
}

func TestALaterNameWinsAmongDropIns(t *testing.T) {
	w := newWorld(t, nil)
	w.Files().Put("/etc/systemd/system/gitlab-runner.service.d/90-local.conf", "[Service]\nTimeoutStopSec=7s\n", "root", 0o644)
	w.Files().Put("/run/systemd/system/gitlab-runner.service.d/50-drain.conf", "[Service]\nTimeoutStopSec=infinity\n", "root", 0o644)
	w.Systemd().Reload()
	if got := w.show("TimeoutStopUSec"); got != "7s" {
		t.Errorf("with 50-drain.conf: %s, want that of 90-local.conf", got)
	}
	w.Files().Put("/run/systemd/system/gitlab-runner.service.d/zz-drain.conf", "[Service]\nTimeoutStopSec=infinity\n", "root", 0o644)
	w.Systemd().Reload()
	if got := w.show("TimeoutStopUSec"); got != "infinity" {
		t.Errorf("with zz-drain.conf: %s", got)
	}
	if w.show("TimeoutStopFailureMode") != "abort" {
		t.Error("service.d does not hold for every service")
	}
}

func TestStopEndsAPendingAutoRestart(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) { o.RestartSec = "120" })
	w.Systemd().Kill(unit, syscall.SIGQUIT, true)
	w.eventually("the auto-restart", func() bool { return w.show("SubState") == "auto-restart" })
	w.dropIn(graceful...)
	if w.show("SubState") != "auto-restart" || w.show("MainPID") != "0" {
		t.Error("Restart=no canceled a pending restart")
	}
	if out, code := w.sh("sudo -n systemctl kill --signal=SIGTERM --kill-whom=main gitlab-runner", ""); code != 1 || !strings.Contains(out, "No main process to kill") {
		t.Errorf("kill: status %d, %s", code, out)
	}
	if out, code := w.sh("sudo -n systemctl stop gitlab-runner", ""); code != 0 || w.show("ActiveState") != "inactive" {
		t.Errorf("stop: status %d, %s, unit %s", code, out, w.show("ActiveState"))
	}
}

func TestStartWhileDeactivatingReplacesTheStop(t *testing.T) {
	w := newWorld(t, nil)
	w.dropIn(graceful...)
	id := w.job(400*time.Millisecond, 0)
	pid := w.show("MainPID")
	stop := w.Systemd().Stop(unit)
	w.Systemd().Start(unit)
	<-stop.Done()
	if !stop.Canceled() || w.show("ActiveState") != "deactivating" || w.show("MainPID") != pid {
		t.Errorf("unit %s, pid %s, was %s", w.show("ActiveState"), w.show("MainPID"), pid)
	}
	if jobs := w.Systemd().Jobs(); len(jobs) != 1 || jobs[0].Kind != "start" || jobs[0].Step != "waiting" {
		t.Errorf("jobs = %+v", jobs)
	}
	w.eventually("a new process", func() bool { return w.show("ActiveState") == "active" && w.show("MainPID") != pid })
	if w.verdict(id) != simgitlab.VerdictSucceeded {
		t.Errorf("job %s", w.verdict(id))
	}
}

func TestRemovingTheDropInWhileDeactivatingAbortsALateJob(t *testing.T) {
	w := newWorld(t, short("500ms"))
	w.dropIn(graceful...)
	id := w.job(time.Minute, 0)
	w.Systemd().Stop(unit)
	began := time.Now()
	w.eventually("more than the unit's own limit has gone", func() bool { return time.Since(began) > 600*time.Millisecond })
	if w.show("ActiveState") != "deactivating" {
		t.Fatalf("unit %s", w.show("ActiveState"))
	}
	w.Files().RemoveAll("/run/systemd/system/gitlab-runner.service.d")
	w.Systemd().Reload()
	w.eventually("the abort", func() bool { return w.show("ActiveState") == "failed" })
	if w.show("Result") != "timeout" || w.record(id).Status != "running" {
		t.Errorf("result %s, job %s", w.show("Result"), w.record(id).Status)
	}
}

func TestTheContainerIsGoneBeforeTheResultIsIn(t *testing.T) {
	w := newWorld(t, nil)
	w.dropIn(graceful...)
	w.gitlab.Inject(simgitlab.Fault{Kind: simgitlab.FaultStatus, Code: 500, FinalUpdateOnly: true, Count: 2})
	id := w.job(100*time.Millisecond, 0)
	w.Systemd().Stop(unit)
	w.eventually("the container's end", func() bool { return len(w.Containers()) == 0 })
	if w.show("ActiveState") != "deactivating" || w.record(id).Status != "running" {
		t.Errorf("unit %s, job %s: the gap is closed", w.show("ActiveState"), w.record(id).Status)
	}
	w.eventually("the result", func() bool { return w.verdict(id) == simgitlab.VerdictSucceeded })
	w.eventually("the exit", func() bool { return w.show("ActiveState") == "inactive" })
}

// Case T22 (gitlab-org/gitlab-runner#39847).
func TestAJobAssignedAtTheInstantOfSIGQUITIsOrphaned(t *testing.T) {
	w := newWorld(t, nil)
	w.gitlab.Switch(func(s *simgitlab.Switches) { s.AssignDelay = time.Minute })
	id := w.gitlab.Enqueue(simgitlab.JobSpec{})
	w.eventually("the assignment", func() bool { return w.record(id).Status == "running" })
	w.dropIn(graceful...)
	w.Systemd().Stop(unit)
	w.eventually("the exit", func() bool { return w.show("ActiveState") == "inactive" })
	w.eventually("the orphan", func() bool { return w.verdict(id) == simgitlab.VerdictOrphaned })
	if !w.logged("Checking for jobs... failed") {
		t.Error("the journal does not tell of the cut request")
	}
}

func TestAGracefulCancelRunsAfterScript(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(time.Minute, 100*time.Millisecond)
	w.cancel(id)
	w.eventually("the cancel", func() bool { return w.record(id).Status == "canceled" })
	if !w.record(id).AfterScriptEnded || w.record(id).ScriptEnded {
		t.Errorf("record = %+v", w.record(id))
	}
}

func TestExecStopRunsBeforeTheSignalAndMayHurtTheToken(t *testing.T) {
	w := newWorld(t, short("45s", "ExecStop=/usr/local/bin/unregister.sh"))
	w.Files().Put("/usr/local/bin/unregister.sh", "#!/bin/sh\ncurl -s --request DELETE --form token="+simgitlab.DefaultRunnerToken+" "+w.url+"/api/v4/runners\n", "root", 0o755)
	<-w.Systemd().Stop(unit).Done()
	if d := w.gitlab.Ledger().Damage; len(d) != 1 {
		t.Errorf("damage = %+v", d)
	}
	w.Systemd().Start(unit)
	w.dropIn(graceful...)
	if w.show("ExecStop") != "" {
		t.Error("an empty ExecStop= did not clear the unit's")
	}
}

func TestARebootKeepsTheSystemIDAndLosesTheDropIn(t *testing.T) {
	for name, act := range map[string]func(*simhost.Host){"reboot": (*simhost.Host).Reboot, "power cut": (*simhost.Host).Crash} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.dropIn(graceful...)
			w.Systemd().Stop(unit)
			id, boot := w.SystemID(), w.BootID()
			act(w.Host)
			w.eventually("the runner is back", func() bool { return w.show("SubState") == "running" })
			if w.SystemID() != id || w.BootID() == boot || w.show("Restart") != "always" {
				t.Errorf("system_id %s (was %s), boot %s (was %s), Restart %s", w.SystemID(), id, w.BootID(), boot, w.show("Restart"))
			}
			if out, code := w.sh("true", ""); code != 0 {
				t.Errorf("ssh after it: %d %s", code, out)
			}
		})
	}
}

func TestARebootWaitsForADrainedJob(t *testing.T) {
	w := newWorld(t, nil)
	w.dropIn(graceful...)
	id := w.job(300*time.Millisecond, 0)
	w.Systemd().Stop(unit)
	w.Reboot()
	if w.verdict(id) != simgitlab.VerdictSucceeded {
		t.Errorf("job %s", w.verdict(id))
	}
}

func TestAWrapperSwallowsSIGQUIT(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) {
		o.UnitText = "[Service]\nExecStart=/bin/sh -c \"/usr/bin/gitlab-runner run --config /etc/gitlab-runner/config.toml\"\nUser=fedora\nTimeoutStopSec=infinity\nKillSignal=SIGQUIT\nKillMode=mixed\n"
	})
	first := w.job(50*time.Millisecond, 0)
	w.Systemd().Stop(unit)
	second := w.gitlab.Enqueue(simgitlab.JobSpec{})
	w.eventually("both jobs run though it was stopped", func() bool {
		return w.verdict(first) == simgitlab.VerdictSucceeded && w.verdict(second) == simgitlab.VerdictSucceeded
	})
	if w.show("ActiveState") != "deactivating" {
		t.Errorf("unit %s", w.show("ActiveState"))
	}
}
