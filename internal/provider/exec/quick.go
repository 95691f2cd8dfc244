package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// quick runs a reading command to its end, at most for the verb's timeout.
// How it ended is in the outcome; an error means that it was not run, or that
// ctx was canceled.
func (p *Provider) quick(ctx context.Context, req request) (outcome, error) {
	argv, err := p.resolve(req.Verb)
	if err != nil {
		return outcome{}, err
	}
	env, err := p.environment(req)
	if err != nil {
		return outcome{}, err
	}
	body, err := json.Marshal(req)
	if err != nil {
		return outcome{}, p.cfg.invalid("the %s request cannot be rendered: %w", req.Verb, err)
	}
	limit := p.cfg.timeout(req.Verb)
	grace := min(limit/4, quickGrace)
	bounded, cancel := context.WithTimeout(ctx, limit-grace)
	defer cancel()
	bounded, stop := context.WithCancelCause(bounded)
	defer stop(nil)

	out := &capped{flooded: func() { stop(errFlood) }}
	log := &tail{}
	cmd := osexec.CommandContext(bounded, argv[0], argv[1:]...) //nolint:gosec // argv of the configuration is the purpose
	cmd.Env, cmd.Dir = env, p.stateDir()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(body, '\n')), out, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = grace / 2
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil { // reaped: the pid may be another's
			return err
		}
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	if err := cmd.Start(); err != nil {
		return outcome{}, fleet.Errorf(fleet.CodeUnavailable, "%s: the %s command cannot be started: %w", p.subject(req), req.Verb, err)
	}
	leader, idErr := identify(cmd.Process.Pid)
	err = cmd.Wait()
	if idErr == nil {
		p.tidy(ctx, leader, req)
	}
	o := outcome{stdout: out.buf.Bytes(), flooded: out.over, last: lastLine(log.buf), exit: exitOf(cmd.ProcessState)}
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return outcome{}, fleet.Errorf(fleet.CodeCanceled, "%s: %s was interrupted: %w", p.subject(req), req.Verb, ctx.Err())
	case out.over:
		o.why = errFlood.Error()
	case bounded.Err() != nil:
		o.why = "it did not end within " + limit.String() + " and was ended"
	case err != nil && o.exit == 0 && !errors.Is(err, osexec.ErrWaitDelay) && !errors.Is(err, syscall.EPIPE):
		o.why = err.Error()
	}
	if !o.ok() {
		o.log = p.keepLog(req, log.buf)
	}
	return o, nil
}

// tidy ends what a reading command has left behind in its session.
func (p *Provider) tidy(ctx context.Context, leader process, req request) {
	pids, err := leader.members()
	if err == nil && len(pids) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), quickGrace)
	defer cancel()
	if err := leader.end(bounded, quickGrace/4); err != nil {
		p.log.WarnContext(ctx, "processes of a command are left", "fleet", p.cfg.Fleet, "vm", req.VM, "verb", string(req.Verb), "error", err.Error())
	}
}

// keepLog keeps the log of a failed reading command for people; "" if that
// did not work.
func (p *Provider) keepLog(req request, log []byte) string {
	dir := p.fleetDir()
	if req.VM != "" {
		dir = p.vmDir(req.VM)
	}
	path := filepath.Join(dir, string(req.Verb)+".log")
	if os.MkdirAll(dir, 0o700) != nil || os.WriteFile(path, log, 0o600) != nil {
		return ""
	}
	return path
}

// exitOf yields an exit code as a shell counts it.
func exitOf(state *os.ProcessState) int {
	if state == nil {
		return 1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

func (p *Provider) subject(req request) string {
	if req.VM == "" {
		return "fleet " + req.Fleet
	}
	return fleet.Ref{Fleet: req.Fleet, VM: req.VM}.String()
}

const (
	quickGrace = 1500 * time.Millisecond // between TERM and the end of a reading command
	endGrace   = 5 * time.Second         // between TERM and KILL of a long one
)
