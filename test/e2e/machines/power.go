package machines

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// PowerOn starts a machine that is off.
func (w *World) PowerOn(m *Machine) error {
	log, err := os.OpenFile(filepath.Join(w.Dir(), "logs", m.Name+"."+m.ID+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(w.Settings.Program, "supervise", w.Name, m.ID) //nolint:gosec,noctx // outlives the caller on purpose
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.Supervisor = HandleOf(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }()
	return writeJSON(w.record(m.ID), m)
}

// PowerCut takes a machine's power away at once; PowerOn brings it back.
func (w *World) PowerCut(ctx context.Context, m *Machine) error {
	m.Supervisor.Kill()
	return m.group().kill(ctx)
}

// Hang freezes a machine, or lets it go on.
func (w *World) Hang(m *Machine, hung bool) error { return m.group().freeze(hung) }

// Partition pulls a machine's cable, or plugs it back in.
func (w *World) Partition(ctx context.Context, m *Machine, cut bool) error {
	return w.cloud().plug(ctx, m.port(), !cut)
}
