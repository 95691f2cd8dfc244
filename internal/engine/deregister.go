package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// deregisterState is a deregistration's own.
type deregisterState struct {
	Old     fleet.Incarnation `json:"old"`
	Asked   time.Time         `json:"asked,omitzero"`    // of a stray: when its own delete was committed
	Intent  time.Time         `json:"intent,omitzero"`   // the removal of an entry may have been asked for from here on
	Changed int               `json:"changed,omitempty"` // how often the entry was changed between look and call
	Removed time.Time         `json:"removed,omitzero"`  // the removal was answered
	Proofs  int               `json:"proofs"`            // how often the token was asked about
}

// How often the token is asked about before not knowing is accepted.
const tokenProofs = 20

// deregister adds the deregistration of an incarnation whose absence was
// confirmed. Without a runner token there is none: deleting a VM needs no right
// to write.
func (w *work) deregister(old fleet.Incarnation) {
	switch {
	case w.f.Registration == fleet.RegistrationNone || old.Instance == "" && old.SystemID == "":
		return
	case w.f.Individual() && old.Entry == 0:
		w.fact(fleet.FactWarning, "the runner entry of instance %s was never read: if it has one, it stays in GitLab", old.Instance)
		return
	case !w.f.Individual() && (w.f.Registrar == nil || old.SystemID == ""):
		return
	}
	state := deregisterState{Old: old}
	if w.stray {
		state.Asked = w.op.Delete.IntentAt // its entry was read on its host before
	}
	c, err := newChore(w.op, fleet.ChoreDeregister, "", w.now(), state)
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

// deregister removes what stands for the deleted VM alone in GitLab, last of
// all (design.md section 6): its manager, or its own runner entry.
func deregister(ctx context.Context, r *errand) error {
	var s deregisterState
	if err := r.load(&s); err != nil {
		return err
	}
	switch r.f.Registration {
	case fleet.RegistrationIndividual:
		return r.removeEntry(ctx, &s)
	case fleet.RegistrationNone:
		return r.end("skipped: the fleet's registration is none")
	default:
		return r.removeManager(ctx, &s)
	}
}

// removeManager removes the deleted VM's own manager and proves that the shared
// token lives.
func (r *errand) removeManager(ctx context.Context, s *deregisterState) error {
	if r.f.Registrar == nil {
		return r.end("skipped: no runner token is configured any more")
	}
	if s.Removed.IsZero() {
		op, fresh, done, err := r.allowed(ctx, s)
		if done || err != nil {
			return err
		}
		bounded, cancel := timeout(ctx, fresh)
		defer cancel()
		if why, err := r.livesOn(bounded, s.gone(op, r.c.CreatedAt), s.Old.SystemID); err != nil {
			return err
		} else if why != "" {
			return r.end("skipped: %s", why)
		}
		err = r.f.Registrar.RemoveManager(bounded, s.Old.SystemID)
		if fleet.CodeOf(err) == fleet.CodeForbidden {
			r.fact(fleet.FactWarning, "the manager of %s stays: %s", s.Old.SystemID, text(err))
			return r.end("the manager of %s stays: GitLab refused its removal", s.Old.SystemID)
		}
		if err != nil {
			return err
		}
		s.Removed = r.now()
	}
	return r.proveToken(ctx, s)
}

// gone is when the incarnation was gone at the latest: confirmed to be, or, of
// one that had vanished before a create, when that was asked for.
func (s *deregisterState) gone(op *fleet.Operation, confirmed time.Time) time.Time {
	if op.Kind == fleet.KindCreate && s.Asked.IsZero() {
		return op.CreatedAt
	}
	return confirmed
}

// livesOn says why the manager may be another VM's by now, of which nobody here
// knows; "" = it is not seen to be. Errors: GitLab did not answer, this time.
func (r *errand) livesOn(ctx context.Context, gone time.Time, systemID string) (string, error) {
	if r.f.GitLab == nil {
		return "", nil
	}
	managers, at, err := r.f.GitLab.Managers(ctx)
	switch {
	case err != nil && !fleet.Retryable(fleet.CodeOf(err)):
		r.fact(fleet.FactWarning, "the manager of %s stays: whether another VM lives under it cannot be told: %s", systemID, text(err))
		return "whether another VM lives under the manager of " + systemID + " cannot be told: " + text(err), nil
	case err != nil:
		return "", err
	case at.IsZero():
		return "GitLab does not say what time it has", nil
	}
	for _, m := range managers {
		if m.SystemID != systemID {
			continue
		}
		if why := m.Outlives(gone, at.Sub(r.now())); why != "" {
			return why, nil
		}
	}
	return "", nil
}

// copyShows is how long a copy of the VM that lives has to show itself: the
// slack of the clocks, and some polls of its runner.
const copyShows = time.Minute

// removalFresh is how long a look allows a removal: a worker that stalled
// between the two must not remove what has come meanwhile.
const removalFresh = 10 * time.Second

// allowed looks whether the removal may happen now. If not, the chore has been
// ended or put off, and done is true. Else the call must be over within fresh.
func (r *errand) allowed(ctx context.Context, s *deregisterState) (op *fleet.Operation, fresh time.Duration, done bool, err error) {
	began := r.now()
	op, err = r.Store.Operation(ctx, r.c.Operation)
	if err != nil {
		return nil, 0, true, err
	}
	why, ready, err := r.mayRemove(ctx, op, s)
	switch fresh = removalFresh - r.now().Sub(began); {
	case err != nil:
		return nil, 0, true, err
	case why != "":
		return nil, 0, true, r.end("skipped: %s", why)
	case !ready:
		return nil, 0, true, r.keep(s, r.now().Add(10*time.Second))
	case fresh <= 0:
		return nil, 0, true, r.keep(s, r.now()) // the look is old already: look again
	}
	return op, fresh, false, nil
}

// mayRemove says why the manager, or the entry, must stay, or whether it is too
// early: the operation and its orphan watch go first, and no known VM may have
// the system_id or the entry, the new incarnation included. What others may
// change meanwhile is read last.
func (r *errand) mayRemove(ctx context.Context, op *fleet.Operation, s *deregisterState) (why string, ready bool, err error) {
	if !op.Phase.Finished() || r.now().Before(r.c.CreatedAt.Add(copyShows)) {
		return "", false, nil
	}
	if op.Kind.Creates() && op.Create.New.SystemID == "" {
		return "the new VM's system_id is not known", false, nil
	}
	if r.f.Individual() && op.Kind.Creates() && op.Create.New.Entry == 0 {
		return "the new VM's runner entry is not known", false, nil
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
			switch {
			case vm.Ref == r.c.Ref() && vm.Instance != "" && !vm.Missing && vm.SystemID == "":
				return "the system_id of the VM's new instance " + vm.Instance + " is not known", false, nil
			case vm.SystemID != "" && vm.SystemID == s.Old.SystemID:
				return "VM " + vm.Ref.String() + " has the same system_id " + vm.SystemID, false, nil
			case vm.Entry != 0 && vm.Entry == s.Old.Entry:
				return fmt.Sprintf("VM %s has the same runner entry %d", vm.Ref, vm.Entry), false, nil
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
	for i := range open {
		if r.watches(&open[i], s) {
			return "", false, nil
		}
	}
	return "", true, nil
}

// watches says whether a chore is an orphan watch that looks for jobs under the
// manager, for this operation or an earlier one on its VM: with the manager they
// would go from GitLab's lists.
func (r *errand) watches(c *fleet.Chore, s *deregisterState) bool {
	if c.Kind != fleet.ChoreOrphanWatch || c.Ref() != r.c.Ref() {
		return false
	}
	var watch watchState
	return c.Operation == r.c.Operation || json.Unmarshal(c.State, &watch) == nil && watch.Subject.SystemID == s.Old.SystemID
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
