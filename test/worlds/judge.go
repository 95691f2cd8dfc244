package worlds

import (
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// What is judged in the moment that it happens.

// judgeStop judges a stop that is about to take effect on a machine.
func (w *World) judgeStop(m *machine, t engine.Target, o fleet.Order) {
	if _, ok := m.stops[o.Operation]; !ok {
		m.stops[o.Operation] = w.now
	}
	op, _ := w.operation(o.Operation)
	switch {
	case m.id != t.Instance:
		w.violation("identity", "%s stops the intake of %s, which a person has made; it was meant for %s", o.Operation, m, t.Instance)
	case op == nil: // the sweep's
	case (m.trait == Unregisters || m.trait == Expiry) && !op.Request.NoDrain && !w.ledger.promised[op.ID].skipped:
		w.violation("refuse", "%s stops the intake of %s, whose host must be refused (%s)", o.Operation, m, m.trait)
	}
}

// judgeEnd judges a SIGTERM of ours.
func (w *World) judgeEnd(m *machine, o fleet.Order) {
	op, stray := w.operation(o.Operation)
	for _, j := range m.jobs {
		if op == nil || !w.waived(op, stray, m, o.Operation) {
			w.violation("cut", "%s ends job %d on %s, which would have ended by itself at %s", o.Operation, j.id, m, j.ends)
		}
	}
}

// reopened says whether somebody else has started the runner so shortly before
// a call that no proof could know.
func (m *machine) reopened(op string, called time.Duration) bool {
	return m.startedBy != op && m.pidSince > called-fleet.ProofAge-2*time.Second
}

// judgeDelete judges a delete of ours that is about to take effect.
func (w *World) judgeDelete(m *machine, o engine.DeleteOrder, called time.Duration) {
	op, stray := w.operation(o.Operation)
	switch {
	case op == nil:
		w.violation("identity", "%s is deleted for %s, which does not exist", m, o.Operation)
		return
	case m.name != op.VM || !stray && !op.Kind.Deletes():
		w.violation("identity", "%s is deleted for %s, a %s of %s", m, o.Operation, op.Kind, op.VM)
		return
	case stray && (m.label == "" || m.id == op.Create.New.Instance):
		w.violation("identity", "%s is deleted as a stray of %s: it is the one to keep", m, op.ID)
		return
	case !stray && m.born > w.checked(op.ID):
		w.violation("identity", "%s is deleted for %s, which was asked before it was made", m, op.ID)
		return
	}
	if !m.guest() {
		return
	}
	waived := w.waived(op, stray, m, o.Operation)
	if m.trait == Unregisters {
		w.ledger.tokenDead = o.Operation
	}
	// Under a waiver a host that never answered cannot be asked what its shutdown
	// does (docs/what-sluice-cannot-promise.md).
	if m.trait == Unregisters && !(waived && m.heard < w.checked(op.ID)) {
		w.violation("token", "%s is deleted for %s; its shutdown unregisters the fleet's token", m, op.ID)
	}
	if waived || m.reopened(o.Operation, called) {
		return
	}
	w.judgeProof(m, o.Operation)
}

// judgeProof holds a delete without a waiver to what must be true of its VM.
func (w *World) judgeProof(m *machine, by string) {
	for _, j := range append(append([]*job(nil), m.jobs...), m.coming...) {
		w.violation("cut", "%s deletes %s while job %d runs; it would have ended by itself at %s", by, m, j.id, j.ends)
	}
	switch read, ok := w.ledger.usable[m.key()]; {
	case m.unit.MainPID != 0:
		w.violation("proof", "%s deletes %s while its runner runs, in state %s", by, m, m.unit.ActiveState)
	case !w.spec.HasGitLab || m.systemID == "" || m.pids == 0: // no runner ever joined
	case !ok || read < m.goneAt:
		w.violation("proof", "%s deletes %s; since its runner went, at %s, GitLab gave no usable answer", by, m, m.goneAt)
	}
}

// judgeBirth judges an instance of ours that comes to be.
func (w *World) judgeBirth(m *machine, late bool) {
	for _, other := range w.living(m.vm) {
		if other != m && other.label != "" && !other.deleting && !late {
			w.violation("one of each", "%s is made while %s is there", m, other)
		}
	}
}

// judgeRemoval judges the removal of a manager.
func (w *World) judgeRemoval(systemID string) {
	if w.spec.Registration != fleet.RegistrationFleet {
		w.violation("token", "the manager of %s is removed, and the fleet's registration is %s", systemID, w.spec.Registration)
	}
	for _, m := range w.machines {
		if m.systemID == systemID && !m.gone && !m.deleting {
			w.violation("token", "the manager of %s is removed, and %s lives under it", systemID, m)
		}
	}
}
