//go:build e2e

package e2e_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// host is one incarnation of a VM with a person logged in on it.
type host struct {
	*machines.Machine
	scene    *scene
	shell    *stage.Shell
	systemID string
}

// host waits until the VM of this name is up and its runner active, and logs in.
func (s *scene) host(name string) *host {
	s.t.Helper()
	m := s.machine(name)
	if m == nil {
		s.t.Fatalf("there is no machine %s", name)
	}
	h := &host{Machine: m, scene: s}
	h.login()
	h.await("active")
	// A simple unit is active before its process has done anything.
	s.await(20*time.Second, "the runner of "+name+" to have a system_id", func() (bool, error) {
		h.systemID, _ = h.shell.Run("cat /etc/gitlab-runner/.runner_system_id")
		return h.systemID != "", nil
	})
	return h
}

// login logs in, again after a reboot.
func (h *host) login() {
	h.scene.t.Helper()
	if h.shell != nil {
		h.shell.Close()
	}
	shell, err := h.scene.Login(h.scene.ctx, h.Machine, stage.Fedora)
	if err != nil {
		h.scene.t.Fatal(err)
	}
	h.shell = shell
	h.scene.t.Cleanup(shell.Close)
}

// run executes a script as the login user.
func (h *host) run(script string) string {
	h.scene.t.Helper()
	out, err := h.shell.Run(script)
	if err != nil {
		h.scene.t.Fatalf("%s: %v", h.Name, err)
	}
	return out
}

// ops executes a script as the administrator, over SSH.
func (h *host) ops(script string) {
	h.scene.t.Helper()
	shell, err := h.scene.Login(h.scene.ctx, h.Machine, stage.Ops)
	if err != nil {
		h.scene.t.Fatal(err)
	}
	defer shell.Close()
	if out, err := shell.Run(script); err != nil {
		h.scene.t.Fatalf("%s: %v: %s", h.Name, err, out)
	}
}

// root executes a script as root, as somebody does who sits in front of the machine: no
// sudoers file matters.
func (h *host) root(script string) string {
	h.scene.t.Helper()
	cmd, err := h.scene.World.Inside(h.scene.ctx, h.Machine, "/bin/sh", "-euc", script)
	if err != nil {
		h.scene.t.Fatal(err)
	}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.scene.t.Fatalf("%s: %v: %s", h.Name, err, out)
	}
	return strings.TrimSpace(string(out))
}

// unit reads one property of the runner's unit; "" while the machine doesn't answer.
func (h *host) unit(property string) string {
	cmd, err := h.scene.World.Inside(h.scene.ctx, h.Machine, "systemctl", "show", "--value", "--property", property, "gitlab-runner")
	if err != nil {
		return ""
	}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// await waits until the runner's unit is in a state.
func (h *host) await(state string) {
	h.scene.t.Helper()
	h.scene.await(30*time.Second, "the runner of "+h.Name+" to be "+state, func() (bool, error) {
		return h.unit("ActiveState") == state, nil
	})
}

// bootID reads the guest's boot id; "" while it has none: until a booting guest has one of
// its own, it sees this host's.
func (h *host) bootID() string {
	cmd, err := h.scene.World.Inside(h.scene.ctx, h.Machine, "cat", bootIDFile)
	if err != nil {
		return ""
	}
	out, err := cmd.Output()
	ours, _ := os.ReadFile(bootIDFile)
	if err != nil || string(out) == string(ours) {
		return ""
	}
	return strings.TrimSpace(string(out))
}

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// reboot lets the machine reboot, waits until it has, and yields its new boot id.
func (h *host) reboot() string {
	h.scene.t.Helper()
	before, now := h.bootID(), ""
	h.root("systemctl reboot")
	h.scene.await(60*time.Second, h.Name+" to be back from its reboot", func() (bool, error) {
		now = h.bootID()
		return now != "" && now != before, nil
	})
	return now
}

// dropIn says whether our drop-in is there.
func (h *host) dropIn() bool {
	cmd, err := h.scene.World.Inside(h.scene.ctx, h.Machine, "test", "-e", "/run/systemd/system/gitlab-runner.service.d/zz-sluice-drain.conf")
	return err == nil && cmd.Run() == nil
}

// jobContainer names the container of a job.
func jobContainer(id int64) string { return "runner-" + strconv.FormatInt(id, 10) }

// contextFor yields a context that ends after d, or with the test.
func contextFor(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
