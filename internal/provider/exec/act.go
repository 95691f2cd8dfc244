package exec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// startHold is how long the call that starts a command waits for its end, so
// that a quick script needs no second call.
const startHold = 2 * time.Second

// leftGrace is what processes left behind by a command get between TERM and
// KILL.
const leftGrace = 2 * time.Second

// settle is how long after its command's end an effect may stay unseen by
// describe before the attempt counts as failed.
const settle = 2 * time.Minute

// Create implements [engine.Machines].
func (p *Provider) Create(ctx context.Context, o engine.CreateOrder) (engine.Progress, error) {
	req := p.request(VerbCreate, o.VM)
	req.Operation, req.Attempt, req.Token = o.Operation, o.Attempt, o.Token
	req.Image, req.Spec = o.Prepared.Image, o.Prepared.Spec
	if err := p.checkOrder(req, o.Ref); err != nil {
		return engine.Progress{}, err
	}
	return p.act(ctx, req, creating{p})
}

// Delete implements [engine.Machines].
func (p *Provider) Delete(ctx context.Context, o engine.DeleteOrder) (engine.Progress, error) {
	req, err := p.deleteRequest(o)
	if err != nil {
		return engine.Progress{}, err
	}
	return p.act(ctx, req, deleting{p})
}

func (p *Provider) deleteRequest(o engine.DeleteOrder) (request, error) {
	req := p.request(VerbDelete, o.VM)
	req.Operation, req.Attempt, req.Token, req.Instance = o.Operation, o.Attempt, o.Token, o.Instance
	if o.Instance == "" {
		return req, fleet.Errorf(fleet.CodeInvalid, "%s: a delete needs an instance id, the name alone is not enough", o.Ref)
	}
	return req, p.checkOrder(req, o.Ref)
}

func (p *Provider) checkOrder(req request, ref fleet.Ref) error {
	if ref.Fleet != p.cfg.Fleet {
		return fleet.Errorf(fleet.CodeInvalid, "%s is not a VM of fleet %s", ref, p.cfg.Fleet)
	}
	if err := checkName("VM name", req.VM); err != nil {
		return err
	}
	if err := checkName("operation id", req.Operation); err != nil {
		return err
	}
	return checkName("token", req.Token)
}

// effect is what an act is meant to bring about, judged by describe.
type effect interface {
	// before looks whether the act is needed at all. Errors refuse it.
	before(ctx context.Context, req request) (done bool, progress engine.Progress, err error)
	// after judges a command that has ended, however it ended.
	after(ctx context.Context, req request, end ending) (engine.Progress, error)
}

// ending is how a session ended and when.
type ending struct {
	outcome
	at time.Time
}

// act starts the command of an attempt, or looks how it is.
func (p *Provider) act(ctx context.Context, req request, e effect) (engine.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, QuickLimit)
	defer cancel()
	turn := p.turn(req.VM)
	turn.Lock()
	defer turn.Unlock()

	dir := filepath.Join(p.sessions(req.VM), sessionKey(req))
	s, err := loadSession(dir)
	if err != nil {
		return engine.Progress{}, err
	}
	if s != nil {
		return p.look(ctx, req, s, e)
	}
	if err := p.nobodyElse(ctx, req); err != nil {
		return engine.Progress{}, err
	}
	if done, progress, err := e.before(ctx, req); done || err != nil {
		return progress, err
	}
	s, ended, err := p.start(ctx, req, dir)
	if err != nil {
		return engine.Progress{}, err
	}
	p.log.InfoContext(ctx, "a command was started", "fleet", req.Fleet, "vm", req.VM, "verb", string(req.Verb), "op", req.Operation, "pid", s.PID)
	hold := time.NewTimer(p.hold)
	defer hold.Stop()
	select {
	case <-ended:
	case <-hold.C:
	case <-ctx.Done():
	}
	return p.look(ctx, req, s, e)
}

func (p *Provider) turn(vm string) *sync.Mutex {
	turn, _ := p.turns.LoadOrStore(vm, &sync.Mutex{})
	return turn.(*sync.Mutex)
}

// look says how a session is, and judges it once it has ended.
func (p *Provider) look(ctx context.Context, req request, s *session, e effect) (engine.Progress, error) {
	if s.VM != req.VM || s.Instance != req.Instance {
		return engine.Progress{}, fleet.Errorf(fleet.CodeInvalid, "%s: token %s was used for instance %q before, now for %q", p.subject(req), req.Token, s.Instance, req.Instance)
	}
	st, err := s.state()
	if err != nil {
		return engine.Progress{}, err
	}
	if st == stateRunning {
		why := p.overdue(s)
		if why == "" {
			return engine.Progress{Detail: p.detail(s)}, nil
		}
		if err := p.expire(ctx, s, why); err != nil {
			return engine.Progress{}, err
		}
	}
	if err := p.endSession(ctx, s, leftGrace); err != nil { // what it left behind
		return engine.Progress{}, err
	}
	end := ending{outcome: s.outcome(), at: p.clock.Now()}
	if info, err := os.Stat(s.path(fileResult)); err == nil {
		end.at = info.ModTime()
	}
	return e.after(ctx, req, end)
}

// overdue says why a running command must be ended; "" if it need not.
func (p *Provider) overdue(s *session) string {
	if !p.clock.Now().Before(s.Deadline) {
		return "it did not end within " + s.Deadline.Sub(s.StartedAt).String() + " (command_timeout) and was ended"
	}
	if info, err := os.Stat(s.path(fileOut)); err == nil && info.Size() > maxAnswer {
		return errFlood.Error() + ", and was ended"
	}
	if _, err := os.Stat(s.path(fileEnded)); err == nil {
		return "it had to be ended before and still runs"
	}
	if info, err := os.Stat(s.path(fileLog)); err == nil && info.Size() > maxLog {
		_ = os.Truncate(s.path(fileLog), 0) // the command appends
	}
	return ""
}

func (p *Provider) detail(s *session) string {
	if last := s.lastLine(); last != "" {
		return p.mask(last)
	}
	return "the " + string(s.Act) + " command runs since " + s.StartedAt.UTC().Format(time.RFC3339)
}

// nobodyElse refuses an act while another command for the VM lives.
func (p *Provider) nobodyElse(ctx context.Context, req request) error {
	running, err := p.running(ctx, req.VM)
	if err != nil || len(running) == 0 {
		return err
	}
	return fleet.Errorf(fleet.CodeConflict, "%s: an earlier command still runs: %s", p.subject(req), running[0]).
		WithHint("it is waited for until %s; its log is %s", running[0].Deadline.UTC().Format(time.RFC3339), running[0].path(fileLog))
}

// running lists the VM's sessions that live. One that is overdue is ended
// first.
func (p *Provider) running(ctx context.Context, vm string) ([]*session, error) {
	dirs, err := os.ReadDir(p.sessions(vm))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, p.noState(vm, err)
	}
	living, err := sessionIDs()
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "%s/%s: whether an earlier command lives cannot be seen: %w", p.cfg.Fleet, vm, err)
	}
	var list []*session
	for _, dir := range dirs {
		s, err := loadSession(filepath.Join(p.sessions(vm), dir.Name()))
		if err != nil {
			return nil, err
		}
		if s == nil || !living[s.PID] {
			continue
		}
		live, err := p.lives(ctx, s)
		if err != nil {
			return nil, err
		}
		if live {
			list = append(list, s)
		}
	}
	return list, nil
}

func (p *Provider) lives(ctx context.Context, s *session) (bool, error) {
	st, err := s.state()
	if err != nil {
		return false, err
	}
	if st != stateRunning {
		return false, p.endSession(ctx, s, leftGrace)
	}
	if why := p.overdue(s); why != "" {
		return false, p.expire(ctx, s, why)
	}
	return true, nil
}
