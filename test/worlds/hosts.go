package worlds

import (
	"context"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// hostFaults are what the way to a VM's host does next.
type hostFaults struct {
	loseAnswers int           // of orders
	late        time.Duration // the next order arrives so late, its answer never
	sudoUntil   time.Duration
}

// hostPort is what the engine sees of the machines over SSH.
type hostPort struct{ w *World }

// limits of the SSH adapter.
const (
	connectLimit = 8 * time.Second
	orderLimit   = 10 * time.Second
)

// reach finds the machine behind a target, a moment after the request was sent.
func (h hostPort) reach(ctx context.Context, t engine.Target, call string) (*machine, error) {
	w, i := h.w, h.w.vmIndex(t.VM)
	w.point(call+":request", i)
	if err := w.wait(ctx, w.between(i, 5*time.Millisecond, 120*time.Millisecond)); err != nil {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "the connection was given up: %w", err)
	}
	return h.answering(ctx, t)
}

// answering says who answers at an address: the VM's incarnation of now.
func (h hostPort) answering(ctx context.Context, t engine.Target) (*machine, error) {
	w := h.w
	var there *machine
	for _, m := range w.living(w.vmIndex(t.VM)) {
		if m.id == t.Instance || there == nil && m.guest() {
			there = m
		}
		if m.id == t.Instance {
			break
		}
	}
	switch {
	case there == nil || there.guest() && w.now < max(there.hungUntil, there.lostUntil):
		if err := w.wait(ctx, connectLimit); err != nil {
			return nil, fleet.Errorf(fleet.CodeUnavailable, "connect: timed out: %w", err)
		}
		return nil, fleet.Errorf(fleet.CodeUnavailable, "connect: timed out")
	case !there.guest():
		return nil, fleet.Errorf(fleet.CodeUnavailable, "connect: refused")
	case there.id != t.Instance && !there.byHand(): // its key is known
		return nil, fleet.Errorf(fleet.CodeConflict, "the host key is not the incarnation's")
	}
	return there, nil
}

func (m *machine) byHand() bool { return m.label == "" && m.born > 0 }

// answer brings a reading back, and notes that the engine heard from the host.
func (h hostPort) answer(ctx context.Context, m *machine, call string) error {
	w := h.w
	if err := w.wait(ctx, w.between(m.vm, 5*time.Millisecond, 120*time.Millisecond)); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the answer did not come in time: %w", err)
	}
	m.silence = max(m.silence, w.now-m.heard)
	m.heard = w.now
	w.point(call+":answer", m.vm)
	return nil
}

func (h hostPort) reading(t engine.Target, m *machine, sent time.Duration, containers bool) *fleet.HostReading {
	r := &fleet.HostReading{
		Subject: fleet.Subject{Ref: t.Ref, Incarnation: fleet.Incarnation{Instance: t.Instance, BootID: m.boot, SystemID: m.systemID}},
		TakenAt: start.Add(sent), Unit: m.unit, DropIn: m.dropIn, ContainersKnown: containers,
	}
	if h.w.now < m.muteUntil { // systemd re-executes
		r.Unit, r.DropIn, r.Problem = fleet.UnitState{}, fleet.DropIn{}, "systemctl show answered nothing"
		return r
	}
	if m.dropIn.Effective {
		r.Unit.KillSignal, r.Unit.StopForever, r.Unit.Restart = 3, true, "no"
	}
	if !containers {
		return r
	}
	for _, j := range m.jobs {
		r.Containers = append(r.Containers, fleet.Container{Name: "runner-job", State: "running", JobID: j.id})
	}
	if m.leftover {
		r.Containers = append(r.Containers, fleet.Container{Name: "runner-left", State: "running"})
	}
	return r
}

// Inspect implements engine.Hosts.
func (h hostPort) Inspect(ctx context.Context, t engine.Target) (*fleet.HostFacts, error) {
	sent := h.w.now
	m, err := h.reach(ctx, t, "inspect")
	if err != nil {
		return nil, err
	}
	f := &fleet.HostFacts{
		Reading: *h.reading(t, m, sent, true), UnitLoaded: true, ConfigKnown: true,
		Entries: []fleet.RunnerEntry{{Name: m.name, ID: m.entryID(), TokenPrefix: "glrt-"}},
	}
	if m.systemID != "" {
		f.SystemIDs = []string{m.systemID}
	}
	if m.goneAt > m.upAt {
		f.Ended = h.w.now - m.goneAt
	}
	if w := h.w; w.spec.Individual() && m.entry == nil {
		f.Entries = nil
	}
	if m.unit.MainPID != 0 {
		f.RunnerPIDs, f.MainCommand = []int{m.unit.MainPID}, []string{"/usr/bin/gitlab-runner", "run"}
	}
	switch m.trait {
	case Unregisters:
		f.Unregisters = []string{"remove-registration.service"}
	case Expiry:
		f.Entries[0].TokenExpiresAt = h.w.Now().Add(24 * time.Hour)
	default:
	}
	if h.w.now < h.w.hosts[m.vm].sudoUntil {
		f.SudoErr = "systemctl daemon-reload"
	}
	return f, h.answer(ctx, m, "inspect")
}

func (h hostPort) look(ctx context.Context, t engine.Target, call string, containers bool) (*fleet.HostReading, error) {
	sent := h.w.now
	m, err := h.reach(ctx, t, call)
	if err != nil {
		return nil, err
	}
	r := h.reading(t, m, sent, containers)
	return r, h.answer(ctx, m, call)
}

// Look implements engine.Hosts.
func (h hostPort) Look(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	return h.look(ctx, t, "look", true)
}

// Glance implements engine.Hosts.
func (h hostPort) Glance(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	return h.look(ctx, t, "glance", false)
}

// AwaitExit implements engine.Hosts.
func (h hostPort) AwaitExit(ctx context.Context, t engine.Target, pid int, most time.Duration) (*fleet.HostReading, error) {
	w := h.w
	m, err := h.reach(ctx, t, "await")
	if err != nil {
		return nil, err
	}
	if m.unit.MainPID == pid && w.running != nil {
		m.waiters = append(m.waiters, w.running)
		err = w.wait(ctx, min(most, 10*time.Second))
		m.waiters = slices.DeleteFunc(m.waiters, func(p *proc) bool { return p == w.running })
		if err != nil {
			return nil, fleet.Errorf(fleet.CodeUnavailable, "the wait was ended: %w", err)
		}
	}
	if !m.guest() || w.now < max(m.hungUntil, m.lostUntil) {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "the connection broke")
	}
	if m.unit.MainPID == pid {
		return nil, nil
	}
	r := h.reading(t, m, w.now, true)
	return r, h.answer(ctx, m, "await")
}

// obey checks an order as the script on the host does, under its lock.
func (m *machine) obey(o fleet.Order) error {
	switch {
	case o.BootID != "" && o.BootID != m.boot:
		return fleet.Errorf(fleet.CodeConflict, "the order is for another boot")
	case o.Number < m.number:
		return fleet.Errorf(fleet.CodeConflict, "order %d is too late: %w", o.Number, fleet.Late{Obeyed: m.number, Of: m.dropIn.Operation})
	case m.dropIn.Present && m.dropIn.Owner != o.Owner && !o.TakeOver:
		return fleet.Errorf(fleet.CodeConflict, "drained by another owner: %s", m.dropIn.Owner)
	}
	m.number = o.Number
	return nil
}

// order takes an order to the host, where it takes effect whether or not
// anybody waits for its answer.
func (h hostPort) order(ctx context.Context, t engine.Target, o fleet.Order, call string, effect func(*machine) error) (*fleet.HostReading, error) {
	w, i := h.w, h.w.vmIndex(t.VM)
	sent := w.now
	w.point(call+":request", i)
	out := w.between(i, 10*time.Millisecond, 400*time.Millisecond)
	faults := &w.hosts[i]
	late := faults.late
	faults.late = 0
	var m *machine
	var err error
	arrived := false
	w.after(out+late, func() {
		arrived = true
		if m, err = h.target(t); err != nil {
			return
		}
		w.point(call+":effect", i)
		if w.now < faults.sudoUntil {
			err = fleet.Errorf(fleet.CodeForbidden, "sudo: a password is required")
			return
		}
		if err = m.obey(o); err == nil {
			err = effect(m)
		}
		w.say("%s   order %d %s of %s%s", m, o.Number, o.Verb, o.Operation, outcomeOf(err))
	})
	switch waited := w.wait(ctx, min(out, orderLimit)); {
	case waited != nil:
		return nil, fleet.Errorf(fleet.CodeUnavailable, "the order was given up: %w", waited)
	case !arrived:
		return nil, h.noAnswer(ctx)
	case m == nil:
		return nil, fleet.Errorf(fleet.CodeUnavailable, "connect: no answer")
	}
	if faults.loseAnswers > 0 {
		faults.loseAnswers--
		return nil, h.noAnswer(ctx)
	}
	if err != nil {
		return nil, err
	}
	r := h.reading(t, m, sent, true)
	return r, h.answer(ctx, m, call)
}

// noAnswer waits until the adapter gives up.
func (h hostPort) noAnswer(ctx context.Context) error {
	if err := h.w.wait(ctx, orderLimit); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the order was given up: %w", err)
	}
	return fleet.Errorf(fleet.CodeUnavailable, "the connection broke before the order was answered")
}

// target is who an order arrives at.
func (h hostPort) target(t engine.Target) (*machine, error) {
	for _, m := range h.w.living(h.w.vmIndex(t.VM)) {
		if m.id == t.Instance && m.guest() && h.w.now >= max(m.hungUntil, m.lostUntil) {
			return m, nil
		}
	}
	for _, m := range h.w.living(h.w.vmIndex(t.VM)) {
		if m.byHand() && m.guest() {
			return m, nil // nobody knows its key: it passes for the one that was there
		}
	}
	return nil, fleet.Errorf(fleet.CodeUnavailable, "connect: no answer")
}

func outcomeOf(err error) string {
	if err != nil {
		return " is refused: " + err.Error()
	}
	return ""
}

// StopIntake implements engine.Hosts.
func (h hostPort) StopIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.order(ctx, t, o, "stop", func(m *machine) error {
		h.w.judgeStop(m, t, o)
		m.dropIn = fleet.DropIn{Present: true, Effective: true, Owner: o.Owner, Operation: o.Operation, Number: o.Number}
		m.startQueued, m.touched = false, false
		switch {
		case m.unit.MainPID != 0:
			h.w.sigquit(m, o.Operation)
		case m.unit.ActiveState != "failed":
			m.unit.ActiveState, m.unit.SubState = "inactive", "dead"
		}
		return nil
	})
}

// StartIntake implements engine.Hosts.
func (h hostPort) StartIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.order(ctx, t, o, "start", func(m *machine) error {
		h.w.startUnit(m, o.Operation)
		return nil
	})
}

// startUnit is systemctl start --no-block.
func (w *World) startUnit(m *machine, by string) {
	switch {
	case m.unit.ActiveState == "active":
	case m.unit.MainPID != 0:
		m.startQueued, m.queuedBy = true, by
	case m.trait == Never || m.bad:
		m.unit.ActiveState, m.unit.Result = "failed", "exit-code"
	default:
		w.processUp(m, by)
	}
	m.personOff = false
}

// ReleaseIntake implements engine.Hosts.
func (h hostPort) ReleaseIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.order(ctx, t, o, "release", func(m *machine) error {
		if m.unit.ActiveState == "deactivating" {
			return fleet.Errorf(fleet.CodeConflict, "the unit is deactivating")
		}
		m.dropIn = fleet.DropIn{}
		return nil
	})
}

// EndJobs implements engine.Hosts.
func (h hostPort) EndJobs(ctx context.Context, t engine.Target, o fleet.Order) error {
	_, err := h.order(ctx, t, o, "end", func(m *machine) error {
		if m.unit.MainPID == 0 {
			return nil
		}
		h.w.judgeEnd(m, o)
		h.w.endJobs(m, "us:"+o.Operation, true)
		pid := m.unit.MainPID
		h.w.after(500*time.Millisecond, func() {
			if m.unit.MainPID == pid {
				h.w.processGone(m, "inactive", "success")
			}
		})
		return nil
	})
	return err
}

// Forget implements engine.Hosts.
func (hostPort) Forget(engine.Target) {}
