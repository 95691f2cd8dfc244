package runnerhost

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// reply is a script's run on a host: its answer, or why there is none although
// the host was there.
type reply struct {
	answer  answer
	problem string // "" = the answer is whole
	broken  *fleet.Error
}

// ask runs a script on the target. An error means that the host was not asked
// or that nothing came back; a reply with a problem, that what came is no whole
// answer. All scripts can be repeated at any point, so a kept connection that
// turns out to be dead is replaced once, silently.
func (h *Hosts) ask(ctx context.Context, t engine.Target, s script, more ...variable) (reply, error) {
	ctx, leave, err := h.enter(ctx, t)
	if err != nil {
		return reply{}, err
	}
	defer leave()
	nonce, err := h.nonce()
	if err != nil {
		return reply{}, err
	}
	text, err := s.text(nonce, h.o.Settings, more...)
	if err != nil {
		return reply{}, err
	}
	for {
		l, kept, err := h.connection(ctx, t)
		if err != nil {
			return reply{}, err
		}
		out, err := l.run(ctx, s.command(), text, s.limit+h.o.Limits.Command)
		if err != nil && kept && cut(err) && ctx.Err() == nil {
			l.close()
			h.log.Debug("the kept connection was dead: connecting anew", "fleet", t.Fleet, "vm", t.VM)
			continue
		}
		if err != nil {
			return reply{}, commandFailed(t, s, err)
		}
		return judge(t, s, out, nonce), nil
	}
}

// cut says whether the connection itself was lost.
func cut(err error) bool { return errors.Is(err, errDead) || errors.Is(err, errNoExit) }

func commandFailed(t engine.Target, s script, err error) error {
	if errors.Is(err, errFlood) {
		return fleet.Errorf(fleet.CodeUnavailable, "%s: the host's answer to %s is unusable: %w", t.Ref, s.name, err).
			WithHint("see what a login prints on the host: `ssh HOST true` should print nothing")
	}
	if errors.Is(err, errSlow) {
		return fleet.Errorf(fleet.CodeUnavailable, "%s: the host at %s did not answer to %s within %s", t.Ref, t.Address, s.name, s.limit)
	}
	if open, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
		return fleet.Errorf(fleet.CodeUnavailable, "%s: the host at %s opens no session: %w", t.Ref, t.Address, open).
			WithHint("MaxSessions of its sshd must be 7 or more")
	}
	return unreachable(t, s.name, err)
}

// judge finds the answer in a command's output.
func judge(t engine.Target, s script, out output, nonce string) reply {
	a, err := parseAnswer(out.stdout, nonce)
	if err == nil {
		return reply{answer: a}
	}
	problem := err.Error()
	code, hint := fleet.CodeUnavailable, ""
	switch out.status {
	case 0:
	case 124, 137:
		problem = fmt.Sprintf("the host needed more than %s", s.limit.Round(time.Second))
	case 126, 127:
		problem = "the login cannot run `timeout` and `sh`"
		code, hint = fleet.CodeInvalid, "coreutils and a POSIX shell are needed on the host"
	default:
		problem += fmt.Sprintf(" (status %d)", out.status)
	}
	if said := excerpt(out.stderr); said != "" {
		problem += ": " + said
	}
	broken := fleet.Errorf(code, "%s: %s: %s", t.Ref, s.name, problem)
	if hint != "" {
		broken = broken.WithHint("%s", hint)
	}
	return reply{problem: problem, broken: broken}
}

// excerpt is the last line of what was said, cut to what a message can hold.
func excerpt(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := strings.ToValidUTF8(lines[len(lines)-1], "?")
	if len(last) > 200 {
		last = last[:200] + "…"
	}
	return strings.TrimSpace(last)
}

// Look reads the host once. An answer that is not whole yields a reading that
// is not complete, with the reason: the host was reached.
func (h *Hosts) Look(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	return h.read(ctx, t, scriptLook)
}

// Glance is a Look that does not ask podman: its containers are never known.
func (h *Hosts) Glance(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	return h.read(ctx, t, scriptGlance)
}

func (h *Hosts) read(ctx context.Context, t engine.Target, s script) (*fleet.HostReading, error) {
	takenAt := h.o.Clock.Now()
	r, err := h.ask(ctx, t, s)
	if err != nil {
		return nil, err
	}
	reading := readReading(t, takenAt, r.answer)
	if r.problem != "" {
		reading.Problem = r.problem
	}
	return &reading, nil
}
