package worlds

import (
	"context"
	"encoding/json"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// cloudState is the provider: what it was asked, and what it does next.
type cloudState struct {
	creates, deletes map[string]*attempt // by request token
	downUntil        time.Duration
	vms              []cloudFaults
}

// cloudFaults are what the provider does next with one VM.
type cloudFaults struct {
	blindUntil time.Duration // it is not listed
	refusals   []fleet.Code  // of the next creates
	deleteErrs []fleet.Code  // of the next deletes
	loseCreate int
	loseDelete int
	lateCreate time.Duration // the next create fails, and succeeds so much later
	lateDelete time.Duration
	linger     time.Duration // the next disk outlives its instance
	badImage   bool          // the next machine never joins
}

// attempt is one request token's.
type attempt struct {
	m     *machine
	done  bool
	begun bool
}

// cloudPort is what the engine sees of the provider.
type cloudPort struct{ w *World }

func (c cloudPort) ask(ctx context.Context, call string, i int) error {
	w := c.w
	w.point(call+":request", i)
	if err := w.wait(ctx, w.between(i, 30*time.Millisecond, 600*time.Millisecond)); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the provider did not answer: %w", err)
	}
	if w.now < w.cloud.downUntil {
		return fleet.Errorf(fleet.CodeUnavailable, "503 backend error")
	}
	return nil
}

func (c cloudPort) reply(ctx context.Context, call string, i int) error {
	w := c.w
	if err := w.wait(ctx, w.between(i, 20*time.Millisecond, 300*time.Millisecond)); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the provider's answer did not come in time: %w", err)
	}
	w.point(call+":answer", i)
	return nil
}

func (c cloudPort) instance(m *machine) fleet.Instance {
	i := fleet.Instance{
		ID: m.id, VM: m.name, Presence: fleet.PresenceRunning, Ready: m.boots > 0, Address: m.name + ":22",
		CreatedAt: start.Add(m.born), Labels: map[string]string{},
	}
	if m.label != "" {
		i.Labels[fleet.LabelOperation] = m.label
	}
	switch {
	case m.deleting:
		i.Presence = fleet.PresenceOther
	case m.off:
		i.Presence = fleet.PresenceOff
	}
	return i
}

// List implements engine.Machines.
func (c cloudPort) List(ctx context.Context) ([]fleet.Instance, error) {
	if err := c.ask(ctx, "list", -1); err != nil {
		return nil, err
	}
	var list []fleet.Instance
	for _, m := range c.w.machines {
		switch {
		case m.gone:
		case c.w.now < c.w.cloud.vms[m.vm].blindUntil:
			c.w.ledger.overlooked[m.vm] = c.w.now
		default:
			list = append(list, c.instance(m))
		}
	}
	return list, c.reply(ctx, "list", -1)
}

// Describe implements engine.Machines.
func (c cloudPort) Describe(ctx context.Context, vm string) ([]fleet.Instance, error) {
	i := c.w.vmIndex(vm)
	if err := c.ask(ctx, "describe", i); err != nil {
		return nil, err
	}
	var list []fleet.Instance
	for _, m := range c.w.living(i) {
		if c.w.now < c.w.cloud.vms[i].blindUntil {
			c.w.ledger.overlooked[i] = c.w.now
			continue
		}
		list = append(list, c.instance(m))
	}
	return list, c.reply(ctx, "describe", i)
}

// Prepare implements engine.Machines.
func (c cloudPort) Prepare(ctx context.Context, vm, image string) (fleet.Prepared, error) {
	i := c.w.vmIndex(vm)
	if err := c.ask(ctx, "prepare", i); err != nil {
		return fleet.Prepared{}, err
	}
	return fleet.Prepared{Image: image, Spec: json.RawMessage(`{"vm":"` + vm + `"}`)}, c.reply(ctx, "prepare", i)
}

// Check implements engine.Machines.
func (c cloudPort) Check(ctx context.Context, vm string, _ fleet.Prepared) error {
	i := c.w.vmIndex(vm)
	if err := c.ask(ctx, "check", i); err != nil {
		return err
	}
	return c.reply(ctx, "check", i)
}

// call takes a request to the provider, where it takes effect whether or not
// anybody waits for its answer.
func (c cloudPort) call(ctx context.Context, name string, i int, late time.Duration, effect func() error) error {
	w := c.w
	w.point(name+":request", i)
	out := w.between(i, 30*time.Millisecond, 600*time.Millisecond)
	var err error
	w.after(out+late, func() {
		w.point(name+":effect", i)
		if late == 0 && w.now < w.cloud.downUntil {
			err = fleet.Errorf(fleet.CodeUnavailable, "503 backend error")
			return
		}
		err = effect()
	})
	if waited := w.wait(ctx, out); waited != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the provider did not answer: %w", waited)
	}
	if late > 0 {
		return fleet.Errorf(fleet.CodeUnavailable, "504 gateway timeout")
	}
	if err != nil {
		return err
	}
	return c.reply(ctx, name, i)
}

// Create implements engine.Machines.
func (c cloudPort) Create(ctx context.Context, o engine.CreateOrder) (engine.Progress, error) {
	w, i := c.w, c.w.vmIndex(o.VM)
	faults := &w.cloud.vms[i]
	a := w.cloud.creates[o.Token]
	if a == nil {
		a = &attempt{}
		w.cloud.creates[o.Token] = a
	}
	late := time.Duration(0)
	if !a.begun {
		late, faults.lateCreate = faults.lateCreate, 0
	}
	err := c.call(ctx, "create", i, late, func() error { return c.make(a, o, late > 0) })
	if err != nil {
		return engine.Progress{}, err
	}
	if faults.loseCreate > 0 {
		faults.loseCreate--
		return engine.Progress{}, fleet.Errorf(fleet.CodeUnavailable, "the answer was lost")
	}
	if !a.done {
		return engine.Progress{Detail: "pending"}, nil
	}
	if a.m.gone {
		return engine.Progress{Done: true}, nil
	}
	made := c.instance(a.m)
	return engine.Progress{Done: true, Instance: &made}, nil
}

// make is a create's effect. late = in another zone, where the name is free.
func (c cloudPort) make(a *attempt, o engine.CreateOrder, late bool) error {
	w, i := c.w, c.w.vmIndex(o.VM)
	if a.begun {
		return nil
	}
	faults := &w.cloud.vms[i]
	if len(faults.refusals) > 0 && !late {
		code := faults.refusals[0]
		faults.refusals = faults.refusals[1:]
		w.say("cloud    create of %s for %s: %s", o.VM, o.Operation, code)
		return fleet.Errorf(code, "%s: %s", o.VM, code)
	}
	if there := w.living(i); len(there) > 0 && !late {
		return fleet.Errorf(fleet.CodeConflict, "the name %s is taken by %s", o.VM, there[0].id)
	}
	m := w.birth(i, o.Operation)
	if m.bad, faults.badImage = faults.badImage, false; m.bad {
		m.systemID = "" // nothing has written it
	}
	if late && w.plan.VMs[i].Trait == KeepsID {
		m.systemID = "s_" + m.id // two at a time cannot have kept it
	}
	a.m, a.begun = m, true
	w.judgeBirth(m, late)
	w.say("cloud    %s is made for %s", m, o.Operation)
	w.after(w.between(i, time.Second, 8*time.Second), func() { a.done = true })
	w.after(w.between(i, 10*time.Second, 40*time.Second), func() {
		if !m.gone && !m.deleting && m.boots == 0 {
			w.guestUp(m, true)
		}
	})
	return nil
}

// Delete implements engine.Machines.
func (c cloudPort) Delete(ctx context.Context, o engine.DeleteOrder) (engine.Progress, error) {
	w, i := c.w, c.w.vmIndex(o.VM)
	faults := &w.cloud.vms[i]
	a := w.cloud.deletes[o.Token]
	if a == nil {
		a = &attempt{}
		w.cloud.deletes[o.Token] = a
	}
	called, late := w.now, time.Duration(0)
	if !a.begun {
		late, faults.lateDelete = faults.lateDelete, 0
		if len(faults.deleteErrs) > 0 {
			code := faults.deleteErrs[0]
			faults.deleteErrs = faults.deleteErrs[1:]
			if err := c.ask(ctx, "delete", i); err != nil {
				return engine.Progress{}, err
			}
			return engine.Progress{}, fleet.Errorf(code, "the delete is refused: %s", code)
		}
	}
	err := c.call(ctx, "delete", i, late, func() error {
		if !a.begun {
			a.begun = true
			a.m = w.takeAway(o, called)
		}
		return nil
	})
	if err != nil {
		return engine.Progress{}, err
	}
	if faults.loseDelete > 0 {
		faults.loseDelete--
		return engine.Progress{}, fleet.Errorf(fleet.CodeUnavailable, "the answer was lost")
	}
	return engine.Progress{Done: a.m == nil || a.m.gone}, nil
}

// takeAway is a delete's effect: the guest is gone at once, the instance and
// its disk after a while.
func (w *World) takeAway(o engine.DeleteOrder, called time.Duration) *machine {
	m := w.byID(o.Instance)
	if m == nil || m.gone || m.deleting {
		return m
	}
	w.say("cloud    %s is deleted for %s", m, o.Operation)
	w.judgeDelete(m, o, called)
	w.remove(m, "us:"+o.Operation)
	return m
}

// remove deletes a machine, whoever wants it.
func (w *World) remove(m *machine, by string) {
	faults := &w.cloud.vms[m.vm]
	linger := faults.linger
	faults.linger = 0
	w.guestDown(m, by)
	m.deleting, m.removedBy = true, by
	w.after(w.between(m.vm, 2*time.Second, 20*time.Second), func() {
		m.gone, m.goneSeen, m.diskLeft = true, w.now, w.now+linger
		w.say("cloud    %s is gone", m)
	})
}

// Remains implements engine.Machines.
func (c cloudPort) Remains(ctx context.Context, o engine.DeleteOrder) ([]string, error) {
	i := c.w.vmIndex(o.VM)
	if err := c.ask(ctx, "remains", i); err != nil {
		return nil, err
	}
	var left []string
	if m := c.w.byID(o.Instance); m != nil {
		if !m.gone {
			left = append(left, "instance "+m.id)
		}
		if !m.gone || c.w.now < m.diskLeft {
			left = append(left, "disk "+m.id)
		}
	}
	return left, c.reply(ctx, "remains", i)
}
