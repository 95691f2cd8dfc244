package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// creating is the effect of create: describe shows an instance that carries
// the operation's label, or the one that the command named.
type creating struct{ p *Provider }

func (c creating) before(ctx context.Context, req request) (bool, engine.Progress, error) {
	list, err := c.p.Describe(ctx, req.VM)
	if err != nil {
		return false, engine.Progress{}, err
	}
	if mine := labelled(list, req.Operation); mine != nil {
		return true, engine.Progress{Done: true, Instance: mine, Detail: "an instance of this operation is there already"}, nil
	}
	if len(list) == 0 {
		return false, engine.Progress{}, nil
	}
	by := list[0].Labels[fleet.LabelOperation]
	if by == "" {
		by = "unknown"
	}
	return false, engine.Progress{}, fleet.Errorf(fleet.CodeConflict, "%s: the name is taken by instance %s (operation: %s, %s)",
		c.p.subject(req), list[0].ID, by, list[0].Presence).WithHint("it is waited for; delete it if it must go")
}

func (c creating) after(ctx context.Context, req request, end ending) (engine.Progress, error) {
	list, err := c.p.Describe(ctx, req.VM)
	if err != nil {
		return engine.Progress{}, c.p.unjudged(req, end, err)
	}
	said, sayErr := end.answer()
	instance := labelled(list, req.Operation)
	if said.Instance != nil {
		if named := find(list, said.Instance.ID); named != nil && !foreign(named, req.Operation) {
			instance = named
		}
	}
	switch {
	case !end.ok() && !end.vanished:
		return engine.Progress{Instance: instance}, c.p.failure(req, end.outcome)
	case instance != nil:
		c.p.noteJunk(ctx, req, sayErr, end)
		return engine.Progress{Done: true, Instance: instance, Detail: c.p.mask(end.last)}, nil
	case end.vanished:
		return engine.Progress{}, c.p.failure(req, end.outcome)
	case sayErr != nil && !errors.Is(sayErr, errEmpty):
		return engine.Progress{}, c.p.misspoken(fleet.CodeUnavailable, req, sayErr, end.outcome)
	}
	return c.p.unseen(req, end, "describe does not show an instance with the label "+fleet.LabelOperation+"="+req.Operation)
}

// labelled picks the operation's instance. Of two, a late success among them,
// it is always the older: the other is for the engine to remove.
func labelled(list []fleet.Instance, operation string) *fleet.Instance {
	var mine []fleet.Instance
	for _, instance := range list {
		if instance.Labels[fleet.LabelOperation] == operation {
			mine = append(mine, instance)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	slices.SortFunc(mine, func(a, b fleet.Instance) int {
		if order := a.CreatedAt.Compare(b.CreatedAt); order != 0 {
			return order
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return &mine[0]
}

// foreign says whether the instance was made by another operation.
func foreign(instance *fleet.Instance, operation string) bool {
	by := instance.Labels[fleet.LabelOperation]
	return by != "" && by != operation
}

// deleting is the effect of delete: describe no longer shows the instance.
type deleting struct{ p *Provider }

func (d deleting) before(ctx context.Context, req request) (bool, engine.Progress, error) {
	list, err := d.p.Describe(ctx, req.VM)
	if err != nil || find(list, req.Instance) != nil {
		return false, engine.Progress{}, err
	}
	return true, engine.Progress{Done: true, Detail: "instance " + req.Instance + " is gone already"}, nil
}

func (d deleting) after(ctx context.Context, req request, end ending) (engine.Progress, error) {
	list, err := d.p.Describe(ctx, req.VM)
	if err != nil {
		return engine.Progress{}, d.p.unjudged(req, end, err)
	}
	if find(list, req.Instance) == nil {
		return engine.Progress{Done: true, Detail: d.p.mask(end.last)}, nil
	}
	if end.ok() || end.code() == fleet.CodeNotFound {
		return d.p.unseen(req, end, "describe still shows instance "+req.Instance)
	}
	return engine.Progress{}, d.p.failure(req, end.outcome)
}

// unseen is the answer while a command has ended well and its effect is not
// seen yet: asked is not observed.
func (p *Provider) unseen(req request, end ending, what string) (engine.Progress, error) {
	if p.clock.Now().Sub(end.at) < settle {
		return engine.Progress{Detail: fmt.Sprintf("the %s command has ended; %s yet", req.Verb, what)}, nil
	}
	err := fleet.Errorf(fleet.CodeUnavailable, "%s: the %s command ended with %s, but %s after %s", p.subject(req), req.Verb, end.text(), what, settle)
	return engine.Progress{}, p.withLog(err, "", end.log)
}

// unjudged is the answer when a command has ended and describe cannot be
// asked. The command may have had its effect: never a definite refusal.
func (p *Provider) unjudged(req request, end ending, cause error) error {
	return fleet.Errorf(fleet.CodeUnavailable, "%s: the %s command has ended (%s), what came of it is not known: %w", p.subject(req), req.Verb, end.text(), cause)
}

// noteJunk warns of an answer that cannot be read when it does not matter.
func (p *Provider) noteJunk(ctx context.Context, req request, err error, end ending) {
	if err == nil || errors.Is(err, errEmpty) {
		return
	}
	p.log.WarnContext(ctx, "the answer of a command was not used", "fleet", req.Fleet, "vm", req.VM, "verb", string(req.Verb), "op", req.Operation, "error", p.mask(err.Error()), "file", end.log)
}
