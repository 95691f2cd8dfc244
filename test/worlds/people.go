package worlds

import (
	"context"
	"log/slog"
	"math/rand/v2"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// newControl is the house's own door, over the same store.
func (w *World) newControl() *control.Control {
	return control.New(control.Options{
		Fleets: map[string]fleet.Spec{fleetName: w.spec}, Store: desk{w.store, w}, Waker: waker{w}, Clock: w,
		Random: letters{rand.New(rand.NewPCG(w.plan.Seed, 99))}, Log: slog.New(slog.DiscardHandler), //nolint:gosec // ids of a story
	})
}

// letters makes ids from the world's own chances.
type letters struct{ r *rand.Rand }

// Read implements io.Reader.
func (l letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(l.r.Uint32()) //nolint:gosec // the low byte is what is wanted
	}
	return len(p), nil
}

// ask lets somebody ask, as the API would.
func (w *World) ask(a AskPlan) {
	in := control.Intent{
		Fleet: fleetName, Kind: fleet.Kind(a.Kind), NoDrain: a.NoDrain, Replace: a.Replace,
		TakeOver: a.TakeOver, Parallel: a.Parallel, By: fleet.Actor{Name: "ada", From: "cli"},
	}
	for _, i := range a.VMs {
		in.VMs = append(in.VMs, vmName(i))
	}
	if a.Policy != nil {
		in.Policy = a.Policy.patch()
	}
	answers, err := w.control.Ask(context.Background(), in)
	if err != nil {
		w.say("ada      asks for %s of %v: %s", in.Kind, in.VMs, err)
		return
	}
	for _, answer := range answers {
		w.say("ada      asks for %s of %s: %s", in.Kind, answer.Operation.VM, answer.Operation.ID)
	}
}

func (p PolicyPlan) patch() control.PolicyPatch {
	policy := p.policy()
	return control.PolicyPatch{
		Cap: &policy.Cap, OnOverrun: &policy.OnOverrun, HardCap: &policy.HardCap,
		Unreachable: &policy.Unreachable, ReachDeadline: &policy.ReachDeadline, OnUnproven: &policy.OnUnproven,
	}
}

// operationOn is the VM's unfinished operation; "" = none.
func (w *World) operationOn(i int) string {
	ops, _ := w.store.Unfinished(context.Background())
	for _, op := range ops {
		if op.VM == vmName(i) {
			return op.ID
		}
	}
	return ""
}

func (w *World) cancel(i int) {
	id := w.operationOn(i)
	if id == "" {
		return
	}
	_, err := w.control.Cancel(context.Background(), id, fleet.Actor{Name: "ada"})
	w.say("ada      cancels %s%s", id, outcomeOf(err))
}

func (w *World) resumeHeld(i int) {
	id := w.operationOn(i)
	if id == "" {
		return
	}
	_, err := w.control.Resume(context.Background(), id, "image-3", fleet.Actor{Name: "ada"})
	w.say("ada      resumes %s%s", id, outcomeOf(err))
}

// desk is what control needs of the truth, over the engine's store in memory.
type desk struct {
	*enginetest.Store
	w *World
}

// Insert implements control.Store.
func (d desk) Insert(ctx context.Context, ops []fleet.Operation, _ control.Key, accept func([]control.Inserted) error) ([]control.Inserted, error) {
	present, err := d.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	results := make([]control.Inserted, len(ops))
	for i := range ops {
		results[i] = control.Inserted{Operation: ops[i], New: true}
		for _, other := range present {
			if other.Ref() == ops[i].Ref() {
				results[i] = control.Inserted{Operation: other}
			}
		}
	}
	if err := accept(results); err != nil {
		return nil, err
	}
	for i := range results {
		switch ended := results[i].Ended; {
		case ended != nil:
			if err := d.supersede(ctx, ended, ops[i]); err != nil {
				return nil, err
			}
			results[i] = control.Inserted{Operation: ops[i], New: true}
		case results[i].New:
			d.insert(ops[i])
		}
	}
	return results, nil
}

// supersede ends an operation and stores its successor in one transaction: who is
// killed after the commit leaves both.
func (d desk) supersede(ctx context.Context, ended *fleet.Operation, successor fleet.Operation) error {
	before := ended.Revision
	defer func() {
		if now, err := d.Operation(ctx, ended.ID); err == nil && now.Revision > before {
			d.insert(successor)
		}
	}()
	return d.UpdateOperation(ctx, ended, nil, nil, nil)
}

func (d desk) insert(op fleet.Operation) {
	d.Store.Insert(op)
	d.w.ledger.asked = append(d.w.ledger.asked, op.ID)
}

// Operations implements control.Store; nothing in a world lists them.
func (desk) Operations(context.Context, control.Filter) ([]fleet.Operation, error) { return nil, nil }

// FindOperation implements control.Store: whole ids only.
func (d desk) FindOperation(ctx context.Context, id string) (*fleet.Operation, error) {
	return d.Operation(ctx, id)
}

// Chores implements control.Store; nothing in a world lists them.
func (desk) Chores(context.Context, string) ([]fleet.Chore, error) { return nil, nil }

// Facts implements control.Store; nothing in a world lists them.
func (desk) Facts(context.Context, int64, string, int) ([]fleet.Fact, error) { return nil, nil }
