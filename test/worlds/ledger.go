package worlds

import (
	"context"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// ledger is what the world itself knows to have happened, beyond what the
// machines and jobs carry.
type ledger struct {
	asked     []string                 // operations, as they were accepted
	checked   map[string]time.Duration // when each left preflight
	usable    map[string]time.Duration // when GitLab last gave a usable answer about a system_id
	byHand    map[int]time.Duration    // when a person last made or deleted a VM
	promised  map[string]promise       // what people who changed a drain were told
	tokenDead string                   // who ended the fleet's token

	overlooked map[int]time.Duration // by VM: when the provider last said that it is not there, and it was
}

func newLedger() ledger {
	return ledger{
		checked: map[string]time.Duration{}, usable: map[string]time.Duration{}, byHand: map[int]time.Duration{},
		overlooked: map[int]time.Duration{}, promised: map[string]promise{},
	}
}

// admitted begins the count of how long a host was not heard of.
func (l *ledger) admitted(w *World, op *fleet.Operation) {
	for _, m := range w.living(w.vmIndex(op.VM)) {
		m.silence, m.heard = 0, w.now
	}
}

// overlookedSince says whether the provider has denied a VM since a moment:
// whoever asked could not know better.
func (l *ledger) overlookedSince(vm int, since time.Duration) bool {
	at, ever := l.overlooked[vm]
	return ever && at >= since
}

func (l *ledger) moved(w *World, op *fleet.Operation) {
	if op.Phase == fleet.PhaseDraining {
		if _, ok := l.checked[op.ID]; !ok {
			l.checked[op.ID] = w.now
		}
	}
	w.say("%s  is %s%s", op.ID, op.Phase, errorOf(op))
}

// checked is when an operation left preflight; 0 = it did not. Of one whose
// controller was killed just after it had committed that, the journal tells.
func (w *World) checked(id string) time.Duration {
	if at, ok := w.ledger.checked[id]; ok {
		return at
	}
	for _, f := range w.store.Facts {
		if f.Operation == id && f.Kind == fleet.FactPhase && f.Phase == fleet.PhaseDraining {
			return since(f.At)
		}
	}
	return 0
}

func errorOf(op *fleet.Operation) string {
	if op.ErrMessage == "" || !op.Phase.Finished() {
		return ""
	}
	return ": " + op.ErrMessage
}

// operation is who an order or a call was given for. stray = for a second VM
// that came late, on behalf of its operation.
func (w *World) operation(id string) (op *fleet.Operation, stray bool) {
	op, err := w.store.Operation(context.Background(), id)
	if err == nil {
		return op, false
	}
	if at := strings.LastIndex(id, "-i-"); at > 0 {
		if op, err = w.store.Operation(context.Background(), id[:at]); err == nil {
			return op, true
		}
	}
	return nil, false
}

// waived says whether somebody's policy lets an operation end a VM without a
// proof, by what the world itself has seen: its own clock since the stop took
// effect, its own list of the host's answers.
func (w *World) waived(op *fleet.Operation, stray bool, m *machine, id string) bool {
	policy := op.Request.Policy
	if stray {
		policy = w.spec.Drain
		policy.OnUnproven = fleet.UnprovenProceed // no GitLab that cannot tell keeps two VMs of one name
	}
	if !stray {
		p, changed := w.ledger.promised[op.ID]
		if changed {
			policy = p.policy
		}
		if op.Request.NoDrain || p.skipped {
			return true
		}
	}
	if policy.Unreachable == fleet.UnreachableProceed && max(m.silence, w.now-m.heard) >= policy.ReachDeadline-time.Second {
		return true
	}
	limit, begun := w.limit(policy, m, id)
	if !begun || w.now < limit {
		return false
	}
	if policy.OnOverrun != fleet.OverrunAbort {
		return true
	}
	// Rows 3 and 6 of the drain's table: the host's answer was empty when the time
	// was up, or the process is gone. A running one is on_overrun's alone.
	unproven := m.unit.MainPID == 0 || m.muteUntil >= limit
	return unproven && policy.OnUnproven == fleet.UnprovenProceed
}
