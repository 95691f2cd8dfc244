package ci

import (
	"context"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// follow prints what happens until there is nothing to wait for. Errors: those
// of the controller when patience has run out, or the context's.
func (j *job) follow(ctx context.Context, asked *client.Asked) error {
	token := j.Token
	if asked.Follow != nil && asked.Follow.Token != "" {
		token = asked.Follow.Token // outlives the id_token
	}
	controller, err := j.connect(token)
	if err != nil {
		return err
	}
	defer j.log.end()
	for {
		if err := j.look(ctx, controller); err != nil {
			return err
		}
		if j.settled(asked.SelfDrain) {
			return nil
		}
		if err := j.news(ctx, controller, pollSeconds); err != nil {
			return err
		}
	}
}

// pollSeconds is how long one look at the journal may wait for news: so often
// the operations themselves are looked up.
const pollSeconds = 5

// look reads every operation that has not ended, and what the journal said of
// it until then.
func (j *job) look(ctx context.Context, controller *client.Client) error {
	for i := range j.ops {
		if j.ops[i].Finished {
			continue
		}
		var op *client.Operation
		err := j.patience.try(ctx, true, func() (err error) {
			op, err = controller.Operation(ctx, j.ops[i].Id)
			return err
		})
		if err != nil {
			return err
		}
		attached := j.ops[i].Attached
		j.ops[i] = *op
		j.ops[i].Attached = attached
	}
	if err := j.news(ctx, controller, 0); err != nil {
		return err
	}
	for i := range j.ops {
		j.progress.waiting(&j.ops[i])
	}
	return nil
}

// news prints the journal's news about the operations; it waits for some.
func (j *job) news(ctx context.Context, controller *client.Client, wait int64) error {
	const most = 1000
	for {
		var news *client.Events
		err := j.patience.try(ctx, true, func() (err error) {
			params := client.ListEventsParams{After: &j.after, Limit: new(int64(most)), Wait: &wait}
			if len(j.ops) == 1 {
				params.Operation = &j.ops[0].Id
			}
			news, err = controller.Events(ctx, params)
			return err
		})
		if err != nil {
			return err
		}
		for i := range news.Events {
			if op := j.operation(deref(news.Events[i].Operation)); op != nil {
				j.progress.event(op, &news.Events[i])
			}
		}
		j.after = news.Next
		if len(news.Events) < most {
			return nil
		}
	}
}

func (j *job) operation(id string) *client.Operation {
	for i := range j.ops {
		if id != "" && j.ops[i].Id == id {
			return &j.ops[i]
		}
	}
	return nil
}

// settled says whether there is nothing to wait for: every operation has
// ended; what has not waits for a person, be it behind one that is held; or
// the VM that this job runs on is the only one left, or its turn has come.
func (j *job) settled(self *client.SelfDrain) bool {
	all, held, moving := true, false, false
	for i := range j.ops {
		op := &j.ops[i]
		if self != nil && op.Vm == deref(self.Vm) {
			if !op.Finished && op.Phase != client.OperationPhaseQueued {
				return true
			}
			continue
		}
		all = all && op.Finished
		held = held || deref(op.Held)
		moving = moving || !op.Finished && !deref(op.Held) && op.Phase != client.OperationPhaseQueued
	}
	return all || held && !moving
}

// selfDrain tells that this job runs on a VM that it has asked to recreate,
// and says whether there are others to follow meanwhile: a job that waited for
// its own VM would hold up the drain that waits for the job (case T65).
func (j *job) selfDrain(self *client.SelfDrain) (others bool) {
	vm := clean(deref(self.Vm))
	if !self.Sure || j.vm(vm) == nil {
		j.log.line(j.log.alert("This job may run on one of these VMs") + ": " + clean(self.Reason) + ". It does not wait for any of them: it would wait for itself.")
		return false
	}
	j.log.line(j.log.alert("This job runs on "+clean(j.Order.Fleet)+"/"+vm) + ", which it has asked to recreate: " + clean(self.Reason) + ". That VM is drained when this job has ended.")
	return len(j.ops) > 1
}

func (j *job) vm(name string) *client.Operation {
	for i := range j.ops {
		if name != "" && j.ops[i].Vm == name {
			return &j.ops[i]
		}
	}
	return nil
}

// passing says whether an error is only that the job was canceled.
func passing(ctx context.Context, err error) bool {
	return ctx.Err() != nil || fleet.CodeOf(err) == fleet.CodeCanceled
}
