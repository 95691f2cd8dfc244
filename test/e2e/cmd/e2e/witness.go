package main

import (
	"context"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
)

// runnerState asks the machine itself, behind everybody's back; empty if it is off.
func runnerState(ctx context.Context, w *machines.World, id string) map[string]string {
	m, err := w.Describe(id)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second) // it may hang
	defer cancel()
	cmd, err := w.Inside(ctx, m, "/bin/sh", "-c", `systemctl show gitlab-runner --timestamp=us+utc \
		--property ActiveState,Result,MainPID,ExecMainExitTimestamp
		echo "BootID=$(cat /proc/sys/kernel/random/boot_id)"
		podman=$(runuser -u fedora -- env XDG_RUNTIME_DIR=/run/user/1000 podman ps --quiet | wc -l)
		echo "Containers=$podman"`)
	if err != nil {
		return nil
	}
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second // what it started in there may hang, too
	out, err := cmd.Output()
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	state := map[string]string{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		state[key] = value
	}
	return state
}
