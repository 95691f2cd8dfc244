package machines

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
)

// Inside yields a command that runs as root in a running machine without any network:
// the hand of somebody who sits in front of it. Not for what Sluice itself must do.
func (w *World) Inside(ctx context.Context, m *Machine, argv ...string) (*exec.Cmd, error) {
	pid := m.group().init()
	if pid == 0 {
		return nil, fmt.Errorf("%s (%s) has no process 1", m.Name, m.ID)
	}
	args := append([]string{"--target", strconv.Itoa(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"}, argv...)
	return exec.CommandContext(ctx, "nsenter", args...), nil //nolint:gosec // a test's own command
}
