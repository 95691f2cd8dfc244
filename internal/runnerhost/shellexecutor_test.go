package runnerhost

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

func TestAHostWhoseJobsRunInItsShellNeedsNoPodman(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) { o.Executor = "shell" })
	w.Uninstall("podman")
	if said := w.refusal(); said != "" {
		t.Fatalf("it is refused: %s", said)
	}
	id := w.job(300 * time.Millisecond)
	w.stop()
	w.eventually("a whole reading of the stopped runner", func() bool {
		r := w.look()
		return r.Unit.Stopped() && r.Complete() && len(r.Containers) == 0
	})
	if got := w.status(id); got != "success" {
		t.Errorf("the job is %s", got)
	}
}

// Without podman, nobody can say that a job of another executor has left nothing.
func TestWithoutPodmanOnlyShellsAreKnownToLeaveNoContainer(t *testing.T) {
	const shells = "[[runners]]\n  executor = \"shell\"\n"
	w := newWorld(t, nil)
	w.Uninstall("podman")
	for name, c := range map[string]struct {
		config string
		known  bool
	}{
		"two shells":          {shells + "[[runners]]\nexecutor='shell' # too\n", true},
		"a shell and another": {shells + "[[runners]]\n  executor = \"custom\"\n", false},
		"named like one":      {"[[runners]]\n  executor = \"shellfish\"\n", false},
		"no executor":         {"[[runners]]\n  name = \"shell\"\n", false},
		"nothing":             {"", false},
	} {
		w.Files().Put("/etc/gitlab-runner/config.toml", c.config, "fedora", 0o600)
		r := w.look()
		if r.ContainersKnown != c.known || !c.known && !strings.Contains(r.Problem, "podman is not installed") {
			t.Errorf("%s: containers known %v, problem %q", name, r.ContainersKnown, r.Problem)
		}
	}
}
