package engine

import (
	"context"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// byID finds an instance by the provider's id.
func byID(list []fleet.Instance, id string) *fleet.Instance {
	for i := range list {
		if id != "" && list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// present leaves out what the provider still lists of instances that are gone.
func present(list []fleet.Instance) []fleet.Instance {
	var there []fleet.Instance
	for _, m := range list {
		if m.Presence != fleet.PresenceAbsent {
			there = append(there, m)
		}
	}
	return there
}

// describe lists the instances that carry the operation's VM name.
func (w *work) describe(ctx context.Context) ([]fleet.Instance, error) {
	list, err := w.f.Machines.Describe(ctx, w.op.VM)
	if err != nil {
		return nil, err
	}
	return present(list), nil
}

// providerReading turns a list into evidence about the old incarnation.
func (w *work) providerReading(list []fleet.Instance) *fleet.ProviderReading {
	r := &fleet.ProviderReading{TakenAt: w.now(), Presence: fleet.PresenceAbsent, Subject: fleet.Subject{Ref: w.op.Ref()}}
	if mine := byID(list, w.op.Old.Instance); mine != nil {
		r.Presence, r.Subject.Instance = mine.Presence, mine.ID
	} else if len(list) > 0 && !w.stray { // beside a stray there is the VM that is kept
		r.Presence, r.Subject.Instance = list[0].Presence, list[0].ID
	}
	return r
}
