package worlds

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// promise is what a person who changed a drain was told holds from then on. The
// judge goes by it, and not by what the row says later.
type promise struct {
	revision       int64 // of the operation that made it
	policy         fleet.DrainPolicy
	deadline, hard time.Duration // on the world's clock; 0 = intake was not stopped
	skipped        bool
	stopped        bool
}

// extend asks for more time: by a length, to a moment, or to a cap.
func (w *World) extend(a Act) {
	e := fleet.Extension{By: a.For}
	switch a.Kind {
	case "to":
		e = fleet.Extension{To: w.Now().Add(a.For)}
	case "cap":
		e = fleet.Extension{Cap: a.For}
	}
	w.change(a, control.Change{Extend: &e})
}

func (w *World) setPolicy(a Act) {
	patch := a.Policy.patch()
	w.change(a, control.Change{Policy: &patch})
}

// change asks for a change of the drain on a VM, and holds the answer to what
// was asked for.
func (w *World) change(a Act, ch control.Change) {
	id := w.operationOn(a.VM)
	if id == "" {
		return
	}
	ch.By = fleet.Actor{Name: "ada", From: "cli", Why: "a release"}
	before, _ := w.operation(id)
	asked := w.now
	answered := false
	defer func() {
		if now, _ := w.operation(id); !answered && now.Revision > before.Revision {
			w.promise(now, ch.Skip && now.Drain.Verdict == fleet.VerdictSkipped) // killed after the commit: it holds all the same
		}
	}()
	after, err := w.control.Change(context.Background(), id, ch)
	answered = true
	w.say("ada      %s %s %s of %s%s", a.Do, a.Kind, a.For, id, outcomeOf(err))
	if err != nil {
		if code := fleet.CodeOf(err); code != fleet.CodeConflict && code != fleet.CodeInvalid {
			w.violation("change", "%s of %s is refused by %s", a.Do, id, err)
		}
		return
	}
	w.judgeChange(a, before, after, asked)
	w.promise(after, ch.Skip)
}

// promise keeps what an operation has promised by its row.
func (w *World) promise(op *fleet.Operation, skip bool) {
	last := w.ledger.promised[op.ID]
	if last.revision > op.Revision {
		return // a change that was asked for later has overtaken this answer
	}
	p := promise{revision: op.Revision, policy: op.Request.Policy, skipped: skip || last.skipped, stopped: !op.Drain.StoppedAt.IsZero()}
	if p.stopped {
		p.deadline, p.hard = since(op.Drain.Deadline), since(op.Drain.HardCap)
	}
	w.ledger.promised[op.ID] = p
}

// judgeChange judges an answer: what was asked for is what holds. before was
// read just before; a commit in between can only have made it later.
func (w *World) judgeChange(a Act, before, after *fleet.Operation, asked time.Duration) {
	if after.Revision > before.Revision+1 {
		return // another change came between the two
	}
	d := after.Drain
	short := false
	switch {
	case a.Do != "extend":
	case d.StoppedAt.IsZero():
		least := a.For
		if a.Kind == "by" {
			least += before.Request.Policy.Cap
		}
		short = after.Request.Policy.Cap < least
	case a.Kind == "cap":
		short = since(d.Deadline) < since(d.StoppedAt)+a.For
	default:
		short = since(d.Deadline) < asked+a.For || a.Kind == "by" && d.Deadline.Before(before.Drain.Deadline.Add(a.For))
	}
	if short || d.HardCap.Before(d.Deadline) {
		w.violation("change", "%s is extended %s %s, and its cap passes at %s, its hard cap at %s", after.ID, a.Kind, a.For, d.Deadline, d.HardCap)
	}
}

// limit is when the drain of an operation ends at the latest on a machine, by
// what people were promised; ok is false where its time has not begun.
func (w *World) limit(policy fleet.DrainPolicy, m *machine, id string) (at time.Duration, ok bool) {
	stop, ok := m.stops[id]
	p, changed := w.ledger.promised[id]
	switch {
	case changed && p.stopped && policy.OnOverrun == fleet.OverrunWait:
		return p.hard, true
	case changed && p.stopped:
		return p.deadline, true
	case policy.OnOverrun == fleet.OverrunWait:
		return stop + max(policy.HardCap, policy.Cap), ok
	default:
		return stop + policy.Cap, ok
	}
}
