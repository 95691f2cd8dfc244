package runnerhost

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

const dropinFile = "/run/systemd/system/gitlab-runner.service.d/zz-sluice-drain.conf"

func TestAStoppedRunnerFinishesItsJobAndTakesNoOther(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(400 * time.Millisecond)
	r := w.stop()
	if !r.DropIn.Effective || r.Unit.ActiveState != "deactivating" || r.DropIn.Operation != "op-1" || r.DropIn.Number != 1 {
		t.Fatalf("after the stop: %+v", r)
	}
	pid := r.Unit.MainPID
	for !w.look().Unit.Stopped() {
		if _, err := w.hosts.AwaitExit(t.Context(), w.target(), pid, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.status(id); got != "success" {
		t.Errorf("the job is %s", got)
	}
	if r := w.look(); !r.Complete() || r.Unit.Result != "success" || !r.DropIn.Effective {
		t.Errorf("afterwards: %+v", r)
	}
}

func TestStoppingManyTimesIsStoppingOnce(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(500 * time.Millisecond)
	o := w.order(fleet.OrderStop)
	for range 3 { // the very same order: a replay
		if _, err := w.hosts.StopIntake(t.Context(), w.target(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.stop()
	w.eventually("the unit is down", func() bool { return w.show("ActiveState") == "inactive" })
	if got := w.status(id); got != "success" {
		t.Errorf("the job is %s", got)
	}
}

func TestAStopThatArrivesAfterTheRestoreDoesNothing(t *testing.T) {
	w := newWorld(t, nil)
	late := w.order(fleet.OrderStop)
	if _, err := w.hosts.StopIntake(t.Context(), w.target(), late); err != nil {
		t.Fatal(err)
	}
	w.restore()
	id := w.job(300 * time.Millisecond)
	_, err := w.hosts.StopIntake(t.Context(), w.target(), late)
	if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "too late") || fleet.ObeyedOf(err) <= late.Number {
		t.Fatalf("err = %v, obeyed %d", err, fleet.ObeyedOf(err))
	}
	if r := w.look(); r.Unit.ActiveState != "active" || r.DropIn.Present {
		t.Errorf("it had an effect: %+v", r)
	}
	w.eventually("the job's end", func() bool { return w.status(id) == "success" })
}

// restore starts intake and removes the drop-in, as the engine does.
func (w *world) restore() {
	w.t.Helper()
	if _, err := w.hosts.StartIntake(w.t.Context(), w.target(), w.order(fleet.OrderStart)); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("intake is open", func() bool { return w.show("SubState") == "running" })
	r, err := w.hosts.ReleaseIntake(w.t.Context(), w.target(), w.order(fleet.OrderRelease))
	if err != nil {
		w.t.Fatal(err)
	}
	if r.DropIn.Present || r.Unit.Restart != "always" {
		w.t.Fatalf("after the release: %+v", r)
	}
}

func TestADropInIsKeptWhileAJobStillRuns(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(500 * time.Millisecond)
	w.stop()
	started, err := w.hosts.StartIntake(t.Context(), w.target(), w.order(fleet.OrderStart))
	if err != nil || !started.DropIn.Effective {
		t.Fatalf("start: %+v, %v", started, err)
	}
	_, err = w.hosts.ReleaseIntake(t.Context(), w.target(), w.order(fleet.OrderRelease))
	if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "deactivating") {
		t.Fatalf("release while deactivating: %v", err)
	}
	if !w.look().DropIn.Effective {
		t.Error("the drop-in is gone")
	}
	w.eventually("a new process", func() bool { return w.show("SubState") == "running" })
	if got := w.status(id); got != "success" {
		t.Errorf("the job is %s", got)
	}
}

func TestAUnitThatWasDownStaysDownWhenItIsReleased(t *testing.T) {
	w := newWorld(t, nil)
	w.stop()
	w.eventually("the unit is down", func() bool { return w.show("ActiveState") == "inactive" })
	r, err := w.hosts.ReleaseIntake(t.Context(), w.target(), w.order(fleet.OrderRelease))
	if err != nil || r.DropIn.Present || r.Unit.ActiveState != "inactive" {
		t.Errorf("release: %+v, %v", r, err)
	}
}

func TestAPendingRestartIsEndedByTheStop(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) { o.RestartSec = "60s" })
	w.look()
	run(t, w, "sudo systemctl kill --signal=SIGKILL --kill-whom=main gitlab-runner.service")
	w.eventually("the restart is pending", func() bool { return w.show("SubState") == "auto-restart" })
	w.stop()
	w.eventually("the unit is down", func() bool { return w.look().Unit.Stopped() })
}

// case T12: settings of a file do not count, effective ones do.
func TestADropInThatWinsOverOursIsNamedAndNothingIsStopped(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(300 * time.Millisecond)
	w.Files().Put("/etc/systemd/system/gitlab-runner.service.d/zzz-local.conf", "[Service]\nKillMode=control-group\nTimeoutStopSec=90\n", "root", 0o644)
	_, err := w.hosts.StopIntake(t.Context(), w.target(), w.order(fleet.OrderStop))
	if fleet.CodeOf(err) != fleet.CodeInvalid {
		t.Fatalf("err = %v", err)
	}
	for _, want := range []string{"f/runner-01", "KillMode=control-group", "TimeoutStopUSec=", "zzz-local.conf", "nothing was stopped"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if r := w.look(); r.Unit.ActiveState != "active" || r.DropIn.Present || r.Unit.Restart != "always" {
		t.Errorf("it left something: %+v", r)
	}
	w.eventually("the job's end", func() bool { return w.status(id) == "success" })
}

// case T11: the unit's own TimeoutStopSec does not end a drain.
func TestALocalDropInAndAHarmlessExecStopDoNotHinder(t *testing.T) {
	w := newWorld(t, nil)
	w.Files().Put("/etc/systemd/system/gitlab-runner.service.d/90-local.conf",
		"[Service]\nTimeoutStopSec=5\nKillSignal=SIGTERM\nRestart=always\nExecStop=/bin/true\n", "root", 0o644)
	if r := w.stop(); !r.DropIn.Effective || r.Unit.KillSignal != 3 || !r.Unit.StopForever {
		t.Errorf("%+v", r)
	}
}

// case T48: a holder that is gone does not hold for ever.
func TestAForeignDrainIsNamedAndCanBeTakenOver(t *testing.T) {
	w := newWorld(t, nil)
	foreign := w.order(fleet.OrderStop)
	foreign.Owner, foreign.Operation, foreign.Number = "sluice-b", "op-theirs", 900
	if _, err := w.hosts.StopIntake(t.Context(), w.target(), foreign); err != nil {
		t.Fatal(err)
	}
	o := w.order(fleet.OrderStop)
	_, err := w.hosts.StopIntake(t.Context(), w.target(), o)
	if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "sluice-b") || !strings.Contains(err.Error(), "op-theirs") ||
		!strings.Contains(err.Error(), "--take-over") {
		t.Fatalf("err = %v", err)
	}
	if r := w.look(); r.DropIn.Owner != "sluice-b" {
		t.Errorf("owner = %q", r.DropIn.Owner)
	}
	o.TakeOver = true
	r, err := w.hosts.StopIntake(t.Context(), w.target(), o)
	if err != nil || r.DropIn.Owner != "sluice-a" {
		t.Fatalf("take-over: %+v, %v", r, err)
	}
	foreign.Number++
	if _, err := w.hosts.StopIntake(t.Context(), w.target(), foreign); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("the former owner may go on: %v", err)
	}
}

func TestAnOrderForAnEarlierBootDoesNothing(t *testing.T) {
	w := newWorld(t, nil)
	o := w.order(fleet.OrderStop)
	o.BootID = testBootID
	_, err := w.hosts.StopIntake(t.Context(), w.target(), o)
	if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "rebooted") {
		t.Errorf("err = %v", err)
	}
	if w.look().DropIn.Present {
		t.Error("it left a drop-in")
	}
}

func TestEndingTheJobsFailsThemWithinASecond(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(time.Hour)
	w.stop()
	for range 2 { // the second finds nothing to end
		if err := w.hosts.EndJobs(t.Context(), w.target(), w.order(fleet.OrderEnd)); err != nil {
			t.Fatal(err)
		}
		w.eventually("the unit is down", func() bool { return w.look().Unit.Stopped() })
	}
	if got := w.status(id); got != "failed" {
		t.Errorf("the job is %s", got)
	}
}

func TestSudoThatRefusesIsNamedAndNothingIsStopped(t *testing.T) {
	for _, words := range [][]string{{"systemctl", "stop"}, {"systemctl", "daemon-reload"}, {"tee"}} {
		w := newWorld(t, nil)
		w.RefuseSudo(words...)
		_, err := w.hosts.StopIntake(t.Context(), w.target(), w.order(fleet.OrderStop))
		if fleet.CodeOf(err) != fleet.CodeForbidden || !strings.Contains(err.Error(), strings.Join(words, " ")) || !strings.Contains(err.Error(), "deploy/sudoers/sluice") {
			t.Errorf("%v: err = %v", words, err)
		}
		r := w.look()
		if r.Unit.ActiveState != "active" || r.DropIn.Present {
			t.Errorf("%v: it had an effect: %+v", words, r)
		}
	}
}

func TestAnOrderOfAnotherVerbIsRefusedBeforeItIsSent(t *testing.T) {
	w := newWorld(t, nil)
	for name, o := range map[string]fleet.Order{
		"verb":   {Verb: fleet.OrderStart, Owner: "a", Operation: "b", Number: 1},
		"number": {Verb: fleet.OrderStop, Owner: "a", Operation: "b"},
		"owner":  {Verb: fleet.OrderStop, Owner: "a\nb", Operation: "b", Number: 1},
	} {
		if _, err := w.hosts.StopIntake(t.Context(), w.target(), o); fleet.CodeOf(err) != fleet.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A connection that is cut while the script is sent leaves the shell with a
// part of it. No part may do anything.
func TestAScriptThatArrivesInPartDoesNothing(t *testing.T) {
	w := newWorld(t, nil)
	o := w.order(fleet.OrderStop)
	text, err := scriptStop.text("n", testSettings(), orderVariables(o)...)
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := w.hosts.connection(t.Context(), w.target())
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.LastIndex(text, "main <")
	for cutAt := whole; cutAt > 0; cutAt -= max(1, (whole-cutAt)/12) {
		_, _ = l.run(t.Context(), scriptStop.command(), text[:cutAt], 5*time.Second)
		if _, err := w.Files().ReadFile(dropinFile, "root"); err == nil {
			t.Fatalf("the first %d of %d bytes had an effect: …%q", cutAt, len(text), text[max(0, cutAt-40):cutAt])
		}
	}
}

// run runs a command on the host as a person would.
func run(t *testing.T, w *world, command string) string {
	t.Helper()
	l, _, err := w.hosts.connection(t.Context(), w.target())
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.run(t.Context(), command, "", 10*time.Second)
	if err != nil || out.status != 0 {
		t.Fatalf("%s: status %d, %v: %s", command, out.status, err, out.stderr)
	}
	return string(out.stdout)
}
