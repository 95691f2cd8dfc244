package engine

import (
	"cmp"
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// preflight checks everything that can be checked before anything is touched,
// and stores what the later phases rest on (design.md section 5, promise 4).
func preflight(ctx context.Context, w *work) (outcome, error) {
	if w.op.Canceled {
		return w.cancel()
	}
	list, err := w.describe(ctx)
	if err != nil {
		return outcome{}, err
	}
	w.sawInstances(list)
	if err := w.checkPresence(list); err != nil {
		return outcome{}, err
	}
	if w.op.Kind.Creates() {
		if err := w.prepareCreate(ctx); err != nil {
			return outcome{}, err
		}
	}
	if !w.op.Kind.Drains() {
		return move(fleet.EventChecked)
	}
	return w.preflightOld(ctx, list)
}

func (w *work) checkPresence(list []fleet.Instance) error {
	switch {
	case len(list) > 1:
		return fleet.Errorf(fleet.CodeConflict, "%s: the provider lists %d instances of that name (%s, %s, …)", w.op.Ref(), len(list), list[0].ID, list[1].ID).
			WithHint("delete the one that is not meant to be, then ask again")
	case w.op.Kind == fleet.KindCreate && len(list) == 1:
		return fleet.Errorf(fleet.CodeConflict, "%s exists already as instance %s", w.op.Ref(), list[0].ID).
			WithHint("`sluice create --recreate %s` drains and replaces it; `sluice delete %s` drains and deletes it", w.op.Ref(), w.op.Ref())
	case w.op.Kind == fleet.KindDrain && len(list) == 0:
		return fleet.Errorf(fleet.CodeNotFound, "%s does not exist: there is nothing to drain", w.op.Ref()).
			WithHint("`sluice create %s` makes it", w.op.Ref())
	}
	return nil
}

// prepareCreate renders the create request and proves the token that the new
// VM will join with: nothing is deleted that cannot come back.
func (w *work) prepareCreate(ctx context.Context) error {
	image := w.op.Request.Image
	if image == "" {
		image = w.f.Image
	}
	if err := w.prepare(ctx, image); err != nil {
		return err
	}
	if w.f.Registrar == nil {
		return nil
	}
	if err := w.f.Registrar.TokenAlive(ctx); fleet.CodeOf(err) == fleet.CodeForbidden {
		return fleet.Errorf(fleet.CodeForbidden, "%s: GitLab refuses the fleet's runner token: a new VM could not join", w.op.Ref()).
			WithHint("put the runner's present token into the fleet's runner.token and into its create script")
	}
	return nil // alive, or unknown: the gate will tell
}

// prepare resolves the image and stores the create request.
func (w *work) prepare(ctx context.Context, image string) error {
	prepared, err := w.f.Machines.Prepare(ctx, w.op.VM, image)
	if err != nil {
		return err
	}
	prepared.Resolved = true
	w.op.Create.Prepared = prepared
	return nil
}

// preflightOld stores the old incarnation and looks at its host.
func (w *work) preflightOld(ctx context.Context, list []fleet.Instance) (outcome, error) {
	if len(list) == 0 {
		return w.preflightAbsent(ctx)
	}
	old := list[0]
	if w.op.Old.Instance != "" && w.op.Old.Instance != old.ID { // what was learnt, and ordered, was another's
		w.watchInherited()
		w.op.Old, w.op.Order, w.op.SeenRun, w.op.WasDown = fleet.Incarnation{}, fleet.Order{}, false, false
	}
	w.op.Old.Instance, w.op.OldAddr, w.op.OldKeys = old.ID, old.Address, old.HostKeys
	if err := w.keepInstance(ctx, old); err != nil {
		return outcome{}, storeError{err}
	}
	switch {
	case w.op.SkipsDrain():
		return w.preflightSkipped(ctx, old)
	case old.Presence == fleet.PresenceOff:
		w.op.WasDown = true
		if err := w.recall(ctx); err != nil { // whose jobs, manager and entry are left
			return outcome{}, err
		}
		return move(fleet.EventChecked)
	case old.Address == "":
		return w.preflightUnreachable(ctx, fleet.Errorf(fleet.CodeUnavailable, "the provider knows no address of instance %s", old.ID))
	}
	facts, err := w.f.inspect(ctx, w.oldTarget())
	if fleet.CodeOf(err) == fleet.CodeUnavailable && ctx.Err() == nil {
		return w.preflightUnreachable(ctx, err)
	}
	if err != nil {
		return outcome{}, err
	}
	w.op.Drain.UnreachableSince = time.Time{}
	return w.preflightHost(ctx, facts)
}

// keepInstance keeps in the VM's row which instance is there: one that knows an
// earlier one, or of none, would speak of this one as gone.
func (w *work) keepInstance(ctx context.Context, old fleet.Instance) error {
	known, err := w.Store.VM(ctx, w.op.Ref())
	if err != nil || known.Instance == old.ID && !known.Missing {
		return err
	}
	vm, err := w.row(ctx)
	if err != nil {
		return err
	}
	if vm.Instance != old.ID {
		vm.Incarnation, vm.Trust = fleet.Incarnation{Instance: old.ID}, nil
	}
	vm.Address, vm.Missing, vm.UpdatedAt = old.Address, false, w.now()
	return nil
}

// preflightSkipped asks nothing about jobs. But a host that would unregister
// the fleet's token at its shutdown is refused whoever asks; one that does not
// answer cannot be asked.
func (w *work) preflightSkipped(ctx context.Context, old fleet.Instance) (outcome, error) {
	if err := w.recall(ctx); err != nil {
		return outcome{}, err
	}
	if old.Presence != fleet.PresenceOff && old.Address != "" {
		facts, err := w.f.inspect(ctx, w.oldTarget())
		switch {
		case ctx.Err() != nil:
			return outcome{}, ctx.Err()
		case err == nil:
			if err := fleet.RefuseUnregister(w.op.Ref(), w.f.Host, facts); err != nil {
				return outcome{}, err
			}
			if len(facts.SystemIDs) == 1 {
				w.op.Old.SystemID = facts.SystemIDs[0]
			}
			w.op.Old.BootID = facts.Reading.Subject.BootID
			if err := w.f.known(ctx, w.op.Ref(), &w.op.Old, facts); err != nil {
				w.fact(fleet.FactWarning, "the VM's runner entry is not known: %s", text(err))
				w.op.Old.Entry, _ = fleet.OwnEntry(w.op.Ref(), facts) // enough to ask whose jobs are cut
			}
		}
	}
	by := w.op.Request.By.Name
	if skip := w.op.Drain.Waiver; skip != nil { // somebody else has, since
		by = skip.By
	}
	w.waive(fleet.VerdictSkipped, 0, by)
	w.rules(fleet.Decision{Reason: "the drain is skipped at the request of " + by})
	w.fact(fleet.FactWarning, "the drain is skipped at the request of %s: jobs on %s will be cut", by, w.op.Ref())
	return move(fleet.EventChecked)
}

// preflightAbsent goes on with what an earlier life of the VM left behind.
func (w *work) preflightAbsent(ctx context.Context) (outcome, error) {
	vm, err := w.row(ctx)
	if err != nil {
		return outcome{}, storeError{err}
	}
	w.op.Old = vm.Incarnation
	w.op.Old.BootID = "" // should it be there after all: nobody has looked at it
	w.op.WasDown = true
	w.op.Drain.Verdict, w.op.Drain.VerdictAt, w.op.Drain.Waiver = "", time.Time{}, nil // a skip has nothing to skip
	w.fact(fleet.FactNote, "the provider lists no instance of %s: there is nothing to drain", w.op.Ref())
	return move(fleet.EventChecked)
}

// preflightUnreachable waits for the host, and at the reach deadline goes by
// the policy: untouched, or on without a drain.
func (w *work) preflightUnreachable(ctx context.Context, err error) (outcome, error) {
	now, policy := w.now(), w.op.Request.Policy
	if w.op.Drain.UnreachableSince.IsZero() {
		w.op.Drain.UnreachableSince = now
	}
	until := w.op.Drain.UnreachableSince.Add(policy.ReachDeadline)
	w.sawHost(nil, text(err))
	d := fleet.Decision{Row: 2, Action: fleet.ActWait, Reason: "the host cannot be reached: " + text(err)}
	d.Reason = w.rules(d)
	switch {
	case now.Before(until):
		w.waitsUnder(d, d.Reason, until, w.withoutHost())
		return wait(2 * time.Second)
	case policy.Unreachable == fleet.UnreachableProceed:
		if err := w.recall(ctx); err != nil {
			return outcome{}, err
		}
		w.waive(fleet.VerdictUnreachable, 2, "policy unreachable=proceed")
		w.fact(fleet.FactWarning, "going on without a proof: the host could not be reached for %s", policy.ReachDeadline)
		w.byRow(d)
		return move(fleet.EventChecked)
	default:
		w.fact(fleet.FactWarning, "the drain is not begun: the host could not be reached for %s", policy.ReachDeadline)
		w.byRow(d)
		return w.fail(fleet.Errorf(fleet.CodeUnavailable, "%s: the host could not be reached for %s: %w", w.op.Ref(), policy.ReachDeadline, err).
			WithHint("nothing was touched; mend the access (`sluice doctor %s`), or ask with unreachable=proceed", w.op.Fleet))
	}
}

// withoutHost is what becomes of an operation whose host was not reached
// before anything was touched.
func (w *work) withoutHost() string {
	if w.op.Request.Policy.Unreachable == fleet.UnreachableProceed {
		d := fleet.Decision{Action: fleet.ActProceed, Verdict: fleet.VerdictUnreachable}
		return d.Then(w.op.Kind, w.op.Request.Policy)
	}
	return "the operation fails, and nothing was touched"
}

// recall takes the system_id of a host that cannot be asked from an earlier
// look at the same instance: it says whose jobs are cut, and whose manager goes.
func (w *work) recall(ctx context.Context) error {
	vm, err := w.Store.VM(ctx, w.op.Ref())
	if err != nil {
		return storeError{err}
	}
	if vm.Instance == w.op.Old.Instance {
		old := &w.op.Old
		old.SystemID, old.Manager = cmp.Or(vm.SystemID, old.SystemID), cmp.Or(vm.Manager, old.Manager)
		old.Entry, old.EntryName = cmp.Or(vm.Entry, old.Entry), cmp.Or(vm.EntryName, old.EntryName)
	}
	return nil
}

// waive lets the operation go on without a proof.
func (w *work) waive(v fleet.Verdict, row int, by string) {
	w.op.Drain.Verdict, w.op.Drain.VerdictAt, w.op.Drain.Doomed = v, w.now(), false
	w.op.Drain.Waiver = &fleet.Waiver{Verdict: v, Row: row, By: by, At: w.now()}
}
