package ci

import (
	"context"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// How closely a job follows. Events come by themselves; what an operation
// waits for is not among them and has to be asked for.
const (
	lookEvery  = 5 * time.Second
	silence    = 100 * time.Millisecond // ends a burst of events
	restPieces = 1000                   // events that are read at the end: all of one job's
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
	what := client.Following{After: j.after, Patience: max(j.Patience, time.Second)}
	for i := range j.ops {
		what.Operations = append(what.Operations, j.ops[i].Id)
	}
	s := listen(ctx, controller, what)
	defer s.end()
	for {
		moved, err := j.gather(s)
		if err != nil {
			return err
		}
		if err := j.look(ctx, controller, moved); err != nil {
			return err
		}
		if j.settled(asked.SelfDrain) {
			s.end()
			j.rest(ctx, controller, what.Operations)
			return nil
		}
	}
}

// stream is the controller's events as they come.
type stream struct {
	events chan client.Event
	lost   chan error
	end    func() // and waits until nothing comes any more
}

func listen(ctx context.Context, controller *client.Client, what client.Following) *stream {
	ctx, cancel := context.WithCancel(ctx)
	s := &stream{events: make(chan client.Event), lost: make(chan error, 1)}
	ended := make(chan struct{})
	s.end = func() {
		cancel()
		<-ended
	}
	go func() {
		defer close(ended)
		s.lost <- controller.Follow(ctx, what, func(e client.Event) error {
			select {
			case s.events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return s
}

// gather prints events until a burst of them is over, at the latest after
// lookEvery, and yields what they are about: nil if there were none in that time.
func (j *job) gather(s *stream) (moved map[string]bool, err error) {
	latest, quiet := time.NewTimer(lookEvery), time.NewTimer(lookEvery)
	defer latest.Stop()
	defer quiet.Stop()
	for {
		select {
		case e := <-s.events:
			j.event(&e)
			if moved == nil {
				moved = map[string]bool{}
			}
			moved[deref(e.Operation)] = true
			quiet.Reset(silence)
		case err := <-s.lost:
			return nil, err
		case <-quiet.C:
			return moved, nil
		case <-latest.C:
			return moved, nil
		}
	}
}

func (j *job) event(e *client.Event) {
	if op := j.operation(deref(e.Operation)); op != nil {
		j.progress.event(op, e)
	}
	j.after = max(j.after, e.Id)
}

// look reads the operations that moved; if none did, all that are under way,
// for what they wait for. What is in line moves with an event.
func (j *job) look(ctx context.Context, controller *client.Client, moved map[string]bool) error {
	for i := range j.ops {
		inLine := j.ops[i].Phase == client.OperationPhaseQueued && j.moving()
		if j.ops[i].Finished || moved == nil && inLine || moved != nil && !moved[j.ops[i].Id] {
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
		if op.Id != j.ops[i].Id || op.Vm != j.ops[i].Vm {
			return fleet.Errorf(fleet.CodeInternal, "the controller answered operation %q where %s was asked for", clean(op.Id), clean(j.ops[i].Id))
		}
		attached := j.ops[i].Attached
		j.ops[i] = *op
		j.ops[i].Attached = attached
	}
	for i := range j.ops {
		if op := &j.ops[i]; op.Phase != client.OperationPhaseQueued || !j.moving() {
			j.progress.waiting(op)
		}
	}
	return nil
}

// moving says whether an operation is under way. What others of this job wait
// for meanwhile is that.
func (j *job) moving() bool {
	return slices.ContainsFunc(j.ops, func(op client.Operation) bool {
		return !op.Finished && !deref(op.Held) && op.Phase != client.OperationPhaseQueued
	})
}

// rest prints what the journal has beyond the events that came. What cannot be
// read now is lost for the log only.
func (j *job) rest(ctx context.Context, controller *client.Client, ids []string) {
	params := client.ListEventsParams{After: &j.after, Operation: &ids, Limit: new(int64(restPieces))}
	news, err := controller.Events(ctx, params)
	if err != nil {
		return
	}
	for i := range news.Events {
		j.event(&news.Events[i])
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
	all, held := true, false
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
	}
	return all || held && !j.moving()
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
