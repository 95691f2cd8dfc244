package control

import (
	"context"
)

// Plan says what [Control.Ask] would do, and stores nothing. Errors: those of
// Ask.
func (c *Control) Plan(ctx context.Context, in Intent) ([]Answer, error) {
	ops, err := c.draft(in)
	if err != nil {
		return nil, err
	}
	list := make([]Inserted, len(ops))
	for i, op := range ops {
		list[i] = Inserted{Operation: op, New: true}
		others, err := c.Store.Operations(ctx, Filter{Fleet: op.Fleet, VM: op.VM, Unfinished: true, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(others) > 0 {
			list[i] = Inserted{Operation: others[0]}
		}
	}
	if err := c.judge(in, ops, list); err != nil {
		return nil, err
	}
	answers := make([]Answer, len(list))
	for i, got := range list {
		if got.Ended != nil {
			got = Inserted{Operation: ops[i], New: true}
		}
		answers[i] = Answer{Operation: got.Operation, Attached: !got.New}
		if got.New {
			answers[i].Operation.ID = "" // it will have one when it is asked for
		}
	}
	return answers, nil
}
