package chaos

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// fate knows where the process dies, and which call's first answer is lost.
type fate struct {
	mu        sync.Mutex
	die, lose string
}

// point kills the process, as kill -9 does, if this is where it dies.
func (f *fate) point(name string) {
	if f.die != name {
		return
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // until the signal is here
}

// effect passes the points around an effect, and loses its answer if told to.
func (f *fate) effect(name string, act func() error) error {
	f.point(name + ":before")
	err := act()
	f.point(name + ":after")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lose == name && err == nil {
		f.lose = ""
		return fleet.Errorf(fleet.CodeUnavailable, "the answer to %s was lost", name)
	}
	return err
}

// mortalStore dies before and after commits, which it names by what they
// write for the first time.
type mortalStore struct {
	engine.Store
	fate *fate
	last fleet.Operation
	mu   sync.Mutex
}

func (s *mortalStore) UpdateOperation(ctx context.Context, op *fleet.Operation, facts []fleet.Fact, vm *fleet.VM, chores []fleet.Chore) error {
	s.mu.Lock()
	name := commitName(s.last, *op)
	s.mu.Unlock()
	err := s.fate.effect(name, func() error { return s.Store.UpdateOperation(ctx, op, facts, vm, chores) })
	if err == nil {
		s.mu.Lock()
		s.last = *op
		s.mu.Unlock()
	}
	return err
}

// commitName says what a commit writes that matters most.
func commitName(before, after fleet.Operation) string {
	switch {
	case before.Phase != after.Phase && before.Phase != "":
		return "commit " + string(after.Phase)
	case before.Order.Number != after.Order.Number:
		return "commit order " + string(after.Order.Verb)
	case before.Delete.IntentAt.IsZero() && !after.Delete.IntentAt.IsZero():
		return "commit intent"
	case before.Create.Token != after.Create.Token:
		return "commit token"
	default:
		return "commit note"
	}
}

// mortalHosts dies around the effects on hosts.
type mortalHosts struct {
	engine.Hosts
	fate *fate
}

func (h mortalHosts) order(verb fleet.OrderVerb, act func() (*fleet.HostReading, error)) (r *fleet.HostReading, err error) {
	err = h.fate.effect(string(verb), func() (err error) {
		r, err = act()
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (h mortalHosts) StopIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.order(fleet.OrderStop, func() (*fleet.HostReading, error) { return h.Hosts.StopIntake(ctx, t, o) })
}

func (h mortalHosts) StartIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.order(fleet.OrderStart, func() (*fleet.HostReading, error) { return h.Hosts.StartIntake(ctx, t, o) })
}

func (h mortalHosts) ReleaseIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.order(fleet.OrderRelease, func() (*fleet.HostReading, error) { return h.Hosts.ReleaseIntake(ctx, t, o) })
}

func (h mortalHosts) EndJobs(ctx context.Context, t engine.Target, o fleet.Order) error {
	return h.fate.effect(string(fleet.OrderEnd), func() error { return h.Hosts.EndJobs(ctx, t, o) })
}

func (h mortalHosts) AwaitExit(ctx context.Context, t engine.Target, pid int, limit time.Duration) (r *fleet.HostReading, err error) {
	err = h.fate.effect("await", func() (err error) {
		r, err = h.Hosts.AwaitExit(ctx, t, pid, limit)
		return err
	})
	return r, err
}

// mortalMachines dies around the effects on the cloud.
type mortalMachines struct {
	engine.Machines
	fate *fate
}

func (m mortalMachines) Create(ctx context.Context, o engine.CreateOrder) (p engine.Progress, err error) {
	err = m.fate.effect("create", func() (err error) {
		p, err = m.Machines.Create(ctx, o)
		return err
	})
	return p, err
}

func (m mortalMachines) Delete(ctx context.Context, o engine.DeleteOrder) (p engine.Progress, err error) {
	err = m.fate.effect("delete", func() (err error) {
		p, err = m.Machines.Delete(ctx, o)
		return err
	})
	return p, err
}
