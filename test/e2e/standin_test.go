//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// These scenarios involve no sluice: they see that the hosts behave as facts measured on
// real ones say (facts/runner-host.md), so that the others mean something.

func TestHostsRunJobsInContainersUnderOneToken(t *testing.T) {
	s := newScene(t, "one", "two")
	one, two := s.host("one"), s.host("two")
	if one.systemID == two.systemID || one.systemID == "" {
		t.Fatalf("system_ids %q and %q must differ", one.systemID, two.systemID)
	}
	first, second := s.begin(one, longJob(8*time.Second)), s.begin(two, longJob(8*time.Second))
	for h, id := range map[*host]int64{one: first, two: second} {
		if got, want := h.run("podman ps --format '{{.Names}}'"), jobContainer(id); got != want {
			t.Errorf("containers on %s: %q, want %q", h.Name, got, want)
		}
	}
	for _, id := range []int64{first, second} {
		s.awaitJob(id, 20*time.Second, "end", finished)
		s.mustHaveSucceeded(id)
	}
}

func TestPlainStopWithFedorasSettingsCutsTheJob(t *testing.T) {
	s := newScene(t, "one")
	h := s.host("one")
	id := s.begin(h, longJob(time.Minute))
	h.ops("sudo systemctl stop gitlab-runner")
	j := s.awaitJob(id, 5*time.Second, "be cut", finished)
	if j.FailureReason != "runner_interrupted" || j.AfterScriptEnded {
		t.Errorf("the job ended as %+v", j)
	}
	h.await("inactive")
	if left := h.run("podman ps --all --quiet"); left != "" {
		t.Errorf("containers left: %s", left)
	}
}

// handDrain is the drop-in drain as a person would type it.
const handDrain = `
sudo mkdir -p /run/systemd/system/gitlab-runner.service.d
printf '[Service]\nRestart=no\nTimeoutStopSec=infinity\nKillSignal=SIGQUIT\nKillMode=mixed\nTimeoutStopFailureMode=terminate\n' |
	sudo tee /run/systemd/system/gitlab-runner.service.d/50-drain.conf >/dev/null
sudo systemctl daemon-reload
sudo systemctl stop --no-block gitlab-runner
`

func TestDropInStopFinishesTheJobAndLosesItOnReboot(t *testing.T) {
	s := newScene(t, "one")
	h := s.host("one")
	id := s.begin(h, longJob(8*time.Second))
	h.ops(handDrain)
	h.await("deactivating")
	h.await("inactive")
	j := s.mustHaveSucceeded(id)
	if since := time.Since(j.FinishedAt); since > 2*time.Second {
		t.Errorf("the process was gone only %s after its result was in", since)
	}
	if got := h.unit("Result"); got != "success" {
		t.Errorf("Result=%s, want success", got)
	}
	h.reboot()
	h.await("active") // /run's drop-in is gone with the reboot
}

func TestKilledRunnerLeavesItsContainer(t *testing.T) {
	s := newScene(t, "one")
	h := s.host("one")
	id := s.begin(h, longJob(time.Second*30))
	h.ops("sudo systemctl kill --signal=KILL --kill-whom=main gitlab-runner")
	s.await(15*time.Second, "systemd to start the runner again", func() (bool, error) {
		return h.unit("NRestarts") == "1" && h.unit("ActiveState") == "active", nil
	})
	if got, want := h.run("podman ps --format '{{.Names}}'"), jobContainer(id); got != want {
		t.Errorf("containers: %q, want %q to be left", got, want)
	}
	if j, _ := s.GitLab.Job(s.ctx, id); j.Status != simgitlab.StatusRunning {
		t.Errorf("the job is %+v, want running for good", j)
	}
}

func TestPowerCutAndCableAndHang(t *testing.T) {
	s := newScene(t, "one")
	h := s.host("one")
	reachable := func() bool {
		conn, err := s.World.DialContext(contextFor(t, time.Second), "tcp", h.Address+":22")
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	for _, fault := range []struct {
		name     string
		on, back func() error
	}{
		{"cable", func() error { return s.World.Partition(s.ctx, h.Machine, true) }, func() error { return s.World.Partition(s.ctx, h.Machine, false) }},
		{"power", func() error { return s.World.PowerCut(s.ctx, h.Machine) }, func() error { return s.World.PowerOn(h.Machine) }},
	} {
		if err := fault.on(); err != nil {
			t.Fatal(fault.name, err)
		}
		if reachable() {
			t.Errorf("%s: sshd still answers", fault.name)
		}
		if err := fault.back(); err != nil {
			t.Fatal(fault.name, err)
		}
		s.await(20*time.Second, "sshd after "+fault.name, func() (bool, error) { return reachable(), nil })
	}
	if err := s.World.Hang(h.Machine, true); err != nil {
		t.Fatal(err)
	}
	if err := s.World.Hang(h.Machine, false); err != nil {
		t.Fatal(err)
	}
	h.login()
	if again := h.run("cat /etc/gitlab-runner/.runner_system_id"); again != h.systemID {
		t.Errorf("system_id %s became %s by a power cut", h.systemID, again)
	}
}
