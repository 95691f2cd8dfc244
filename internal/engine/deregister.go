package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// deregisterState is a deregistration's own.
type deregisterState struct {
	Old     fleet.Incarnation `json:"old"`
	Removed time.Time         `json:"removed,omitzero"` // the manager's removal was answered
	Proofs  int               `json:"proofs"`           // how often the token was asked about
}

// How often the token is asked about before not knowing is accepted.
const tokenProofs = 20

// deregister adds the deregistration of an incarnation whose absence was
// confirmed. Without a runner token there is none: deleting a VM needs no right
// to write.
func (w *work) deregister(old fleet.Incarnation) {
	if w.f.Registrar == nil || old.SystemID == "" || w.f.Registration != fleet.RegistrationFleet {
		return
	}
	c, err := newChore(w.op, fleet.ChoreDeregister, "", w.now(), deregisterState{Old: old})
	if err != nil {
		w.fact(fleet.FactWarning, "no deregistration: %s", text(err))
		return
	}
	w.chores = append(w.chores, c)
}

// deregisterVanished does so for the incarnation in the row of a VM that is
// created anew: it went away behind our back, so no delete of ours did.
func (w *work) deregisterVanished(vm *fleet.VM) {
	if w.op.Kind == fleet.KindCreate && vm.Instance != "" && vm.Instance != w.op.Create.New.Instance {
		w.deregister(vm.Incarnation)
	}
}

// deregister removes the deleted VM's own manager, last of all, and proves
// that the shared token lives (design.md section 6).
func deregister(ctx context.Context, r *errand) error {
	var s deregisterState
	if err := r.load(&s); err != nil {
		return err
	}
	if r.f.Registrar == nil {
		return r.end("skipped: no runner token is configured any more")
	}
	if s.Removed.IsZero() {
		why, ready, err := r.mayRemove(ctx, &s)
		if err != nil {
			return err
		}
		if why != "" {
			return r.end("skipped: %s", why)
		}
		if !ready {
			return r.keep(&s, r.now().Add(10*time.Second))
		}
		err = r.f.Registrar.RemoveManager(ctx, s.Old.SystemID)
		if fleet.CodeOf(err) == fleet.CodeForbidden {
			r.fact(fleet.FactWarning, "the manager of %s stays: %s", s.Old.SystemID, text(err))
			return r.end("the manager of %s stays: GitLab refused its removal", s.Old.SystemID)
		}
		if err != nil {
			return err
		}
		s.Removed = r.now()
	}
	return r.proveToken(ctx, &s)
}

// mayRemove says why the manager must stay, or whether it is too early: the
// operation and its orphan watch go first, and no known VM may have the
// system_id, the new incarnation included.
func (r *errand) mayRemove(ctx context.Context, s *deregisterState) (why string, ready bool, err error) {
	op, err := r.Store.Operation(ctx, r.c.Operation)
	if err != nil {
		return "", false, err
	}
	if !op.Phase.Finished() {
		return "", false, nil
	}
	if op.Kind.Creates() && op.Create.New.SystemID == "" {
		return "the new VM's system_id is not known", false, nil
	}
	if back, err := r.cameBack(ctx, op, s); back || err != nil {
		return "instance " + s.Old.Instance + " is listed again", false, err
	}
	for _, name := range r.fleetNames() {
		vms, err := r.Store.VMs(ctx, name)
		if err != nil {
			return "", false, err
		}
		for _, vm := range vms {
			if vm.SystemID == s.Old.SystemID {
				return "VM " + vm.Ref.String() + " has the same system_id " + vm.SystemID, false, nil
			}
		}
	}
	if busy, err := r.busyVMs(ctx); err != nil || busy[r.c.Ref()] {
		return "", false, err // it may be made anew with the same system_id
	}
	open, err := r.Store.UnfinishedChores(ctx)
	if err != nil {
		return "", false, err
	}
	for _, c := range open {
		if c.Operation == r.c.Operation && c.Kind == fleet.ChoreOrphanWatch {
			return "", false, nil
		}
	}
	return "", true, nil
}

// cameBack says whether the incarnation that had vanished before a create, so
// that no delete has confirmed its absence, is listed again.
func (r *errand) cameBack(ctx context.Context, op *fleet.Operation, s *deregisterState) (bool, error) {
	if op.Kind != fleet.KindCreate {
		return false, nil
	}
	list, err := r.f.Machines.Describe(ctx, op.VM)
	return byID(list, s.Old.Instance) != nil, err
}

func (r *errand) proveToken(ctx context.Context, s *deregisterState) error {
	err := r.f.Registrar.TokenAlive(ctx)
	s.Proofs++
	switch {
	case err == nil:
		return r.end("manager of %s removed; the fleet's token lives", s.Old.SystemID)
	case fleet.CodeOf(err) == fleet.CodeForbidden:
		r.fact(fleet.FactWarning, "THE FLEET'S TOKEN IS DEAD: GitLab refuses it after the manager of %s was removed; no VM of %s can take jobs", s.Old.SystemID, r.c.Fleet)
		r.Log.ErrorContext(ctx, "the fleet's runner token is refused", "op", r.c.Operation, "fleet", r.c.Fleet, "vm", r.c.VM, "error", err)
		return r.end("manager of %s removed; the token is refused", s.Old.SystemID)
	case s.Proofs >= tokenProofs:
		return r.end("manager of %s removed; whether the token lives is unknown: %s", s.Old.SystemID, text(err))
	}
	return r.keep(s, r.now().Add(15*time.Second))
}
