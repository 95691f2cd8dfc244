package api

import (
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// permitChange judges who wants to change a drain that is under way: first
// whether they may do such a thing to this VM, then, when control knows what it
// comes to, whether that is harsher than the fleet's own policy, by the judgement
// that asking goes by. Errors: *access.Refusal, or those of the store.
func (s *Server) permitChange(c *call, id string, ch *control.Change, action access.Action) error {
	switch c.role {
	case operator:
		ch.KeyScope = c.by.Name
		return nil
	case pipeline:
		ch.KeyScope = c.claims.Scope()
	default:
		return errNobody
	}
	op, err := s.Store.FindOperation(c, id)
	if err != nil {
		return err
	}
	wanted := access.Request{Action: action, Fleet: op.Fleet, VMs: []string{op.VM}}
	if err := s.Pipelines.Permit(c, c.claims, wanted); err != nil {
		return err
	}
	change := *ch
	ch.Judge = func(after *fleet.Operation) error {
		own := s.Fleets[after.Fleet].Drain
		wanted.Overrides = changeOverrides(&change, own)
		if !change.Skip {
			wanted.Cap, wanted.WaitsUntil = after.Request.Policy.Cap, changedWait(after.Request.Policy, own)
		}
		if err := s.Pipelines.Permit(c, c.claims, wanted); err != nil {
			return err
		}
		return s.Pipelines.Bind(c, c.claims, change.Key)
	}
	return nil
}

// changeOverrides are the parts of a change that only override allows. An
// extension is none: it is gentler than what holds.
func changeOverrides(ch *control.Change, own fleet.DrainPolicy) []string {
	switch {
	case ch.Skip:
		return []string{string(access.ActionSkipDrain)}
	case ch.Policy != nil:
		return overrides(&control.Intent{Policy: *ch.Policy}, own)
	default:
		return nil
	}
}

// changedWait is how long after the stop a drain ends that waits for jobs
// beyond what its fleet's own policy does; 0 = it does not.
func changedWait(after, own fleet.DrainPolicy) time.Duration {
	if after.OnOverrun != fleet.OverrunWait || own.OnOverrun == fleet.OverrunWait && after.HardCap <= own.HardCap {
		return 0
	}
	return after.HardCap
}
