package machines

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

//go:embed boot.sh
var bootScript string

// rebootStatus is how nspawn says that the guest asked for a reboot.
const rebootStatus = 133

// Supervise keeps a machine on: it boots it, boots it again when the guest asks for a
// reboot, and returns when it is off. It runs in a process of its own, whose end ends
// the machine.
func Supervise(ctx context.Context, world, id string) error {
	w, err := Open(world)
	if err != nil {
		return err
	}
	m, err := w.Describe(id)
	if err != nil {
		return err
	}
	// The kernel watches the thread that forked, not the process.
	runtime.LockOSThread()
	for {
		//nolint:gosec // our own script and arguments
		boot := exec.CommandContext(ctx, "/bin/sh", "-c", bootScript, "boot.sh",
			string(m.group()), m.root(w), m.UUID, string(m.namespace()), m.Name)
		boot.Stdout, boot.Stderr = os.Stdout, os.Stderr
		boot.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		err := boot.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == rebootStatus {
			continue
		}
		return err
	}
}
