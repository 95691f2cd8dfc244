package engine

import (
	"context"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// steady is how long the unit must be active with one process where GitLab
// cannot be asked whether the runner is online.
const steady = 30 * time.Second

// verifying is the gate: the new incarnation serves, or it is kept for
// inspection and the operation fails.
func verifying(ctx context.Context, w *work) (outcome, error) {
	list, err := w.describe(ctx)
	if err != nil {
		return w.notYet("the provider does not answer: "+text(err), 2*time.Second)
	}
	if err := w.findStrays(ctx, list); err != nil {
		return outcome{}, err
	}
	m := byID(list, w.op.Create.New.Instance)
	switch {
	case m == nil:
		return w.notYet("instance "+w.op.Create.New.Instance+" is not listed", time.Second)
	case m.Address == "" || !m.Ready:
		return w.notYet(detail("instance "+m.ID+" is not ready", m.Detail), time.Second)
	}
	w.op.Create.NewAddr, w.op.Create.HostKeys = m.Address, m.HostKeys
	reading, err := w.f.glance(ctx, w.newTarget())
	if err != nil {
		return w.notYet(w.notUp(err), time.Second)
	}
	return w.verifyHost(ctx, reading)
}

// bootTime is how long a new host may be out of reach without a word about it.
const bootTime = time.Minute

func (w *work) notUp(err error) string {
	if w.now().Sub(w.op.PhaseSince) < bootTime {
		return "the new host is not up yet"
	}
	return "the new host cannot be reached: " + text(err)
}

// notYet waits until the gate closes; then the VM stays for inspection.
func (w *work) notYet(reason string, pause time.Duration) (outcome, error) {
	v := &w.op.Verify
	if w.now().Before(v.Deadline) {
		w.waitsFor(reason, v.Deadline, "the operation fails and the VM stays for inspection")
		return wait(pause)
	}
	return w.bad(fleet.Errorf(fleet.CodeUnavailable, "%s did not serve within %s: %s", w.op.Ref(), w.f.GateOnline, reason))
}

// bad ends the operation: the new VM stays for inspection.
func (w *work) bad(why *fleet.Error) (outcome, error) {
	vm, err := w.row(context.Background())
	if err != nil {
		return outcome{}, storeError{err}
	}
	w.deregisterVanished(vm)
	vm.Incarnation, vm.Address = w.op.Create.New, w.op.Create.NewAddr
	vm.Missing, vm.Failed, vm.UpdatedAt = false, true, w.now()
	w.watchLate(2)
	return w.fail(why.
		WithHint("instance %s stays for inspection and counts as not serving; `sluice recreate %s` tries again", w.op.Create.New.Instance, w.op.Ref()))
}

func (w *work) verifyHost(ctx context.Context, r *fleet.HostReading) (outcome, error) {
	v, now := &w.op.Verify, w.now()
	w.op.Create.New.BootID, w.op.Create.New.SystemID = r.Subject.BootID, r.Subject.SystemID
	if r.Unit.ActiveState != "active" || r.Unit.MainPID == 0 {
		v.ActiveSince, v.MainPID = time.Time{}, 0
		return w.notYet(fmt.Sprintf("unit %s is %s", w.f.Host.Unit, word(r.Unit.ActiveState)), time.Second)
	}
	if v.MainPID != r.Unit.MainPID {
		v.ActiveSince, v.MainPID = now, r.Unit.MainPID
	}
	if r.Subject.SystemID == "" {
		return w.notYet("the runner has not written its system_id yet", time.Second)
	}
	other, err := w.sibling(ctx, r.Subject.SystemID)
	switch {
	case err != nil:
		return outcome{}, err
	case other != nil:
		return w.bad(fleet.Errorf(fleet.CodeConflict, "%s came with the system_id %s of %s: GitLab cannot tell them apart; an image must ship an empty /etc/machine-id and no .runner_system_id",
			w.op.Ref(), r.Subject.SystemID, other.Ref))
	case w.f.GitLab != nil:
		return w.verifyManager(ctx)
	default:
		return w.verifySteady(ctx)
	}
}

func word(state string) string {
	if state == "" {
		return "unknown"
	}
	return state
}

// verifyManager wants a manager that is new by GitLab's own clock, and online.
func (w *work) verifyManager(ctx context.Context) (outcome, error) {
	if why := w.newEntry(ctx); why != "" {
		return w.notYet(why, 2*time.Second)
	}
	managers, at, err := w.f.through(w.op.Create.New).Managers(ctx)
	if err != nil {
		return w.notYet("GitLab does not answer: "+text(err), 2*time.Second)
	}
	if c := &w.op.Create; c.GitLabAt.IsZero() && !at.IsZero() { // it did not answer then
		c.GitLabAt = at.Add(c.Began.Sub(w.now()))
	}
	for _, m := range managers {
		if m.SystemID != w.op.Create.New.SystemID {
			continue
		}
		if !w.isNew(m) {
			return w.notYet(fmt.Sprintf("manager %d has not contacted GitLab since the old VM went", m.ID), 2*time.Second)
		}
		if m.Status != "online" {
			return w.notYet(fmt.Sprintf("manager %d is %s", m.ID, m.Status), 2*time.Second)
		}
		w.op.Create.New.Manager = m.ID
		return w.verified(fmt.Sprintf("manager %d (%s) is online", m.ID, m.SystemID))
	}
	return w.notYet("GitLab has not seen system_id "+w.op.Create.New.SystemID+" yet", time.Second)
}

func (w *work) isNew(m fleet.Manager) bool {
	if w.op.Old.SystemID != "" && m.SystemID != w.op.Old.SystemID {
		return true
	}
	if w.op.Old.Manager != 0 && m.ID != w.op.Old.Manager {
		return true
	}
	since := w.op.Create.GitLabAt
	return !since.IsZero() && (m.CreatedAt.After(since) || m.ContactedAt.After(since))
}

// verifySteady is the gate without a GitLab token.
func (w *work) verifySteady(ctx context.Context) (outcome, error) {
	if left := w.op.Verify.ActiveSince.Add(steady).Sub(w.now()); left > 0 {
		return w.notYet(fmt.Sprintf("the unit must be active with one process for %s", steady), min(left, 2*time.Second))
	}
	if w.f.Registrar != nil {
		if err := w.f.Registrar.TokenAlive(ctx); err != nil {
			return w.notYet("the runner token is not proven: "+text(err), 2*time.Second)
		}
	}
	return w.verified("the unit is active (GitLab was not asked: no token)")
}

func (w *work) verified(how string) (outcome, error) {
	vm, err := w.row(context.Background())
	if err != nil {
		return outcome{}, storeError{err}
	}
	w.deregisterVanished(vm)
	vm.Incarnation, vm.Address, vm.Prepared = w.op.Create.New, w.op.Create.NewAddr, w.op.Create.Prepared
	vm.Intake, vm.Missing, vm.Failed, vm.UpdatedAt = fleet.IntakeServing, false, false, w.now()
	w.watchLate(2)
	w.fact(fleet.FactNote, "the new VM serves: %s", how)
	return move(fleet.EventVerified)
}
