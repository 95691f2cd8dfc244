package api

import (
	"fmt"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/whereabouts"
)

// selfDrain says whether the asking job runs, or may run, on a VM that it asks
// to drain: it would wait for itself (case T65). The drain goes on as ever: it
// ends when the job has ended. Nil = the job may wait.
func (s *Server) selfDrain(c *call, intent control.Intent) *SelfDrain {
	if c.role != pipeline || !drains(intent) || s.onOtherRunner(c, intent.Fleet) {
		return nil
	}
	at := s.instance(c.claims.Issuer, intent.Fleet)
	if at == anotherGitLab {
		return nil
	}
	place := s.locate(c, intent.Fleet, at)
	switch {
	case place.VM != "" && slices.Contains(intent.VMs, place.VM):
		return &SelfDrain{VM: place.VM, Reason: place.Reason, Sure: true}
	case place.VM != "" || place.Elsewhere:
		return nil
	case c.claims.Runner == 0:
		return nil // an id_token that names no runner, of a job that no VM shows
	default:
		return &SelfDrain{Reason: "the job runs on this fleet's runner, and it was not found on which VM: " + place.Reason}
	}
}

// locate says where the asking job runs. Of a job that may be another GitLab's
// the numbers mean nothing.
func (s *Server) locate(c *call, fleetName string, at instance) whereabouts.Place {
	switch {
	case at == unknownGitLab:
		return whereabouts.Place{Reason: fmt.Sprintf("which GitLab the fleet belongs to is not known: gitlab.url is %s, and that is no issuer of server.oidc", s.Fleets[fleetName].GitLabURL)}
	case s.Locator == nil:
		return whereabouts.Place{Reason: "where jobs run is not known here"}
	}
	return s.Locator.Locate(c, fleetName, whereabouts.Job{Project: c.claims.Project, ID: c.claims.Job})
}

func drains(in control.Intent) bool {
	return in.Kind.Drains() && !in.NoDrain || in.Kind == fleet.KindCreate && in.Replace
}

// onOtherRunner says whether the id_token names a runner that is not the
// fleet's. A fleet whose entry is not known may be anybody's, but GitLab's own.
func (s *Server) onOtherRunner(c *call, fleetName string) bool {
	ours := s.Fleets[fleetName].RunnerID
	if ours == 0 {
		return c.claims.Hosted()
	}
	return c.claims.Runner != 0 && c.claims.Runner != ours
}

// stillAhead drops the warning where nothing is left to wait for: the answer
// was a repeat, and the VM's operation has ended.
func stillAhead(found *SelfDrain, answers []control.Answer) *SelfDrain {
	for i := range answers {
		op := &answers[i].Operation
		if !op.Phase.Finished() && (found == nil || found.VM == "" || found.VM == op.VM) {
			return found
		}
	}
	return nil
}
