package app

import (
	"context"
	"errors"
	"net/http"

	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
	"gitlab.com/sluice-runners/sluice/internal/hooks/imagename"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// openWebhooks makes the door for GitLab's webhooks and what works off their
// deliveries: in a server only.
func (a *App) openWebhooks(context.Context) error {
	s, ok := a.journal.(*store.Store)
	if a.Role != RoleServe || !ok {
		return nil
	}
	keys, err := webhookKeys(a.Config)
	if err != nil {
		return err
	}
	triggers, err := triggers(a.Config)
	if err != nil {
		return err
	}
	a.queue.Deliveries = &hooks.Worker{Store: s, Control: a.intents, Images: images(a.hands.fleets), Clock: clock{}, Log: a.log}
	a.webhooks = hooks.NewReceiver(hooks.Options{
		Keys: keys, Triggers: triggers, Fleets: a.specs, Store: s, Observer: a.metrics, Clock: clock{}, Log: a.log,
		Waker: waker{queue: a.queue, interrupt: a.engine.Interrupt},
	})
	return nil
}

// front is what the listeners serve: webhooks, and the API.
func (a *App) front() http.Handler {
	if a.webhooks == nil {
		return a.server
	}
	mux := http.NewServeMux()
	mux.Handle(hooks.Path, a.webhooks)
	mux.Handle("/", a.server)
	return mux
}

// webhookKeys reads the tokens of webhooks. Errors: CodeInvalid.
func webhookKeys(c *config.Config) (*hooks.Keys, error) {
	var problems []error
	read := func(list []*config.Secret) []string {
		var texts []string
		for _, s := range list {
			text, err := s.Value()
			problems = append(problems, err)
			texts = append(texts, text)
		}
		return texts
	}
	signing, tokens := read(c.Webhooks.GitLab.SigningTokens), read(c.Webhooks.GitLab.SecretTokens)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	keys, err := hooks.NewKeys(signing, tokens)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "webhooks.gitlab: %w", err)
	}
	return keys, nil
}

// triggers translates the configuration's.
func triggers(c *config.Config) ([]hooks.Trigger, error) {
	var list []hooks.Trigger
	for i := range c.Triggers {
		t := &c.Triggers[i]
		trigger := hooks.Trigger{
			Name: t.Name, On: hooks.Kind(t.On), Project: t.ProjectID, Branch: t.Branch, Tag: t.Tag, Status: t.Status, Sources: t.Sources,
			Fleet: t.Fleet, VMs: t.VMs, ImageWait: t.ImageWait.D(),
		}
		if t.Image != "" {
			var err error
			if trigger.Image, err = imagename.Parse(t.On, t.Image); err != nil {
				return nil, err
			}
		}
		list = append(list, trigger)
	}
	return list, nil
}

// images asks a fleet's provider for an image.
type images map[string]*engine.Fleet

// Find implements hooks.Images.
func (i images) Find(ctx context.Context, fleetName, vm, image string) error {
	f, ok := i[fleetName]
	if !ok {
		return fleet.Errorf(fleet.CodeNotFound, "fleet %q is not configured any more", fleetName)
	}
	prepared, err := f.Machines.Prepare(ctx, vm, image)
	if err != nil {
		return err
	}
	return f.Machines.Check(ctx, vm, prepared)
}
