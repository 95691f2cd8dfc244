package runnerhost

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// A drop-in that is not whole must not be followed by a stop: that would be a
// SIGTERM. The host says what is wrong, its runner goes on, and once it is
// mended the same order is obeyed.
func TestAHostThatCannotTakeTheDropInIsNotStopped(t *testing.T) {
	for name, c := range map[string]struct {
		fault, mend func(*simhost.Host)
		says        string
	}{
		"/run is full":      {func(h *simhost.Host) { h.Files().Fill("/run") }, func(h *simhost.Host) { h.Files().Drain() }, "No space left on device"},
		"/run is read-only": {func(h *simhost.Host) { h.Files().Protect("/run") }, func(h *simhost.Host) { h.Files().Unprotect() }, "Read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			c.fault(w.Host)
			o := w.order(fleet.OrderStop)
			_, err := w.hosts.StopIntake(t.Context(), w.target(), o)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("err = %v", err)
			}
			if r := w.look(); r.Unit.ActiveState != "active" || r.Unit.MainPID == 0 || r.DropIn.Effective {
				t.Errorf("it had an effect: %+v", r)
			}
			c.mend(w.Host)
			if r, err := w.hosts.StopIntake(t.Context(), w.target(), o); err != nil || !r.DropIn.Effective {
				t.Errorf("once mended: %+v, %v", r, err)
			}
		})
	}
}

// A drain writes below /run and nowhere else.
func TestAReadOnlyRootDoesNotHinderADrainAndItsWayBack(t *testing.T) {
	w := newWorld(t, nil)
	for _, dir := range []string{"/etc", "/home", "/root", "/tmp", "/usr", "/var"} {
		w.Files().Protect(dir)
	}
	if _, err := w.hosts.StopIntake(t.Context(), w.target(), w.order(fleet.OrderStop)); err != nil {
		t.Fatal(err)
	}
	w.eventually("the end of the runner", func() bool { r := w.look(); return r.Unit.Stopped() && r.DropIn.Effective })
	if _, err := w.hosts.StartIntake(t.Context(), w.target(), w.order(fleet.OrderStart)); err != nil {
		t.Fatal(err)
	}
	w.eventually("a runner that serves", func() bool { r := w.look(); return r.Unit.ActiveState == "active" && r.Unit.MainPID != 0 })
	if r, err := w.hosts.ReleaseIntake(t.Context(), w.target(), w.order(fleet.OrderRelease)); err != nil || r.DropIn.Present {
		t.Fatalf("%+v, %v", r, err)
	}
}

// While systemd re-executes it answers nothing: that is no state of the unit,
// and no ground to stop it on.
func TestWhileSystemdReexecutesNothingIsTakenForStoppedAndNothingIsStopped(t *testing.T) {
	w := newWorld(t, nil)
	for _, empty := range []int{1, 2, 3} {
		w.EmptyAnswers(empty)
		_, err := w.hosts.StopIntake(t.Context(), w.target(), w.order(fleet.OrderStop))
		w.EmptyAnswers(0)
		if r := w.look(); err != nil && (fleet.CodeOf(err) != fleet.CodeUnavailable || r.Unit.ActiveState != "active" || r.DropIn.Effective) {
			t.Errorf("%d empty answers: %v; %+v", empty, err, r)
		}
		if err == nil {
			break // the answers that count had come
		}
	}
	w.EmptyAnswers(100)
	if r := w.look(); r.Complete() || r.Unit.Stopped() || r.Unit.Known() {
		t.Errorf("an empty answer was taken for one: %+v", r)
	}
}

// The one line that the login shell reads, whichever that is: words and blanks.
func TestTheLineForTheLoginShellMeansTheSameInEveryShell(t *testing.T) {
	plain := regexp.MustCompile(`^[A-Za-z0-9 ./-]+$`)
	for _, s := range allScripts {
		if line := s.command(); !plain.MatchString(line) {
			t.Errorf("%q has more than words and blanks", line)
		}
	}
	ran := 0
	for _, shell := range []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		argv := []string{"-c", scriptLook.command()}
		if shell == "busybox" {
			argv = append([]string{"sh"}, argv...)
		}
		cmd := exec.CommandContext(t.Context(), path, argv...)
		cmd.Stdin = strings.NewReader("echo it is $((40+2))\n")
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "it is 42" {
			t.Errorf("%s: %q, %v", shell, out, err)
		}
		ran++
	}
	if ran < 2 {
		t.Errorf("only %d shells are here", ran)
	}
}
