package exec

import (
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

// supervisor waits for one long command and records how it ended, also when
// Sluice is gone by then. It gets everything as arguments; nothing is
// interpolated. It begins only after a line on fd 3: if Sluice dies before it
// has recorded the session, that pipe closes and nothing was run. The traps
// let it outlive a TERM to its session; its child gets the default back.
const supervisor = `trap : TERM HUP INT
d=$1
shift
read -r go <&3 || exit 125
exec 3<&-
"$@" <"$d/request" >>"$d/out" 2>>"$d/log"
code=$?
(umask 077 && printf '%s\n' "$code" >"$d/result.tmp") &&
{ sync "$d/result.tmp" || sync; } 2>/dev/null && mv -f "$d/result.tmp" "$d/result"
exit "$code"
`

// resolve yields the verb's argv with the executable as an absolute path.
// Errors: CodeInvalid.
func (p *Provider) resolve(verb Verb) ([]string, error) {
	argv := p.cfg.Commands[verb]
	path, err := osexec.LookPath(argv[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, p.cfg.invalid("the %s command cannot be run: %w", verb, err).
			WithHint("give the full path of a file that is executable for the user that runs Sluice")
	}
	return append([]string{path}, argv[1:]...), nil
}

// start begins a long command and returns its session once that is recorded.
// The channel closes when the command has ended, as long as this process
// lives. An error means that nothing was run.
func (p *Provider) start(ctx context.Context, req request, dir string) (*session, <-chan struct{}, error) {
	argv, err := p.resolve(req.Verb)
	if err != nil {
		return nil, nil, err
	}
	env, err := p.environment(req)
	if err != nil {
		return nil, nil, err
	}
	if err := p.furnish(req, dir); err != nil {
		return nil, nil, p.noState(req.VM, err)
	}
	hear, say, err := os.Pipe()
	if err != nil {
		return nil, nil, p.noState(req.VM, err)
	}
	defer func() { _ = say.Close() }()
	args := append([]string{"-c", supervisor, "sluice-exec", dir}, argv...)
	cmd := osexec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", args...) //nolint:gosec // argv of the configuration is the purpose
	cmd.Env, cmd.Dir, cmd.ExtraFiles = env, p.stateDir(), []*os.File{hear}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = hear.Close()
	if err != nil {
		return nil, nil, fleet.Errorf(fleet.CodeUnavailable, "%s: the %s command cannot be started: %w", p.subject(req), req.Verb, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the result file tells
		close(ended)
	}()
	s, err := p.record(req, dir, cmd.Process.Pid)
	if err != nil {
		return nil, nil, p.noState(req.VM, err)
	}
	_, _ = say.WriteString("go\n") // fails only if it was killed: then it vanished
	return s, ended, nil
}

// furnish makes the session's directory and what the command opens.
func (p *Provider) furnish(req request, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	for _, name := range []string{fileResult, fileEnded} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for name, data := range map[string][]byte{fileRequest: append(body, '\n'), fileOut: nil, fileLog: nil} {
		if err := writeDurable(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	return nil
}

func (p *Provider) record(req request, dir string, pid int) (*session, error) {
	who, err := identify(pid)
	if err != nil {
		return nil, err
	}
	now := p.clock.Now()
	s := &session{
		process: who, Act: req.Verb, VM: req.VM, Operation: req.Operation, Attempt: req.Attempt, Token: req.Token,
		Instance: req.Instance, StartedAt: now, Deadline: now.Add(p.cfg.commandTimeout()), dir: dir,
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return s, writeDurable(s.path(fileSession), append(raw, '\n'))
}

func (p *Provider) noState(vm string, err error) error {
	return fleet.Errorf(fleet.CodeUnavailable, "%s: the command was not started, its session cannot be recorded: %w", fleet.Ref{Fleet: p.cfg.Fleet, VM: vm}, err).
		WithHint("see that %s is writable and its disk not full", p.cfg.StateDir)
}

// expire ends a session and says why on disk first, so that the reason
// survives us.
func (p *Provider) expire(ctx context.Context, s *session, why string) error {
	p.log.WarnContext(ctx, "ending a command", "fleet", p.cfg.Fleet, "vm", s.VM, "verb", string(s.Act), "op", s.Operation, "reason", why)
	if err := writeDurable(s.path(fileEnded), []byte(why+"\n")); err != nil {
		p.log.WarnContext(ctx, "the reason for ending a command cannot be recorded", "fleet", p.cfg.Fleet, "vm", s.VM, "op", s.Operation, "error", err.Error())
	}
	return p.endSession(ctx, s, endGrace)
}

func (p *Provider) endSession(ctx context.Context, s *session, grace time.Duration) error {
	if err := s.end(ctx, grace); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "%s: %s cannot be ended: %w", refOf(s.dir), s, err).
			WithHint("end it by hand; the next look goes on")
	}
	return nil
}
