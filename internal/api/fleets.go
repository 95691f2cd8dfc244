package api

import (
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Fleets is a list by name.
type Fleets struct {
	Fleets []Fleet `json:"fleets" nullable:"false"`
}

// VMs is a fleet's members in the order of the configuration.
type VMs struct {
	VMs []VM `json:"vms" nullable:"false"`
}

type (
	fleetsOutput struct{ Body Fleets }
	fleetInput   struct {
		Fleet string `path:"fleet" maxLength:"128"`
	}
	vmsOutput struct{ Body VMs }
)

func (s *Server) fleets() {
	register(s, huma.Operation{
		OperationID: "list-fleets", Method: http.MethodGet, Path: "/api/v1/fleets", Summary: "List the fleets",
	}, s.listFleets)
	register(s, huma.Operation{
		OperationID: "list-vms", Method: http.MethodGet, Path: "/api/v1/fleets/{fleet}/vms", Summary: "List a fleet's VMs",
		Errors: []int{http.StatusNotFound},
	}, s.listVMs)
}

func (s *Server) listFleets(c *call, _ *struct{}) (*fleetsOutput, error) {
	out := &fleetsOutput{Body: Fleets{Fleets: []Fleet{}}}
	for _, name := range slices.Sorted(maps.Keys(s.Fleets)) {
		if !s.reads(c, name) {
			continue
		}
		spec := s.Fleets[name]
		vms, err := s.members(c, spec)
		if err != nil {
			return nil, err
		}
		states := map[string]int{}
		for _, vm := range vms {
			states[vm.State]++
		}
		out.Body.Fleets = append(out.Body.Fleets, Fleet{
			Name: name, RunnerID: spec.RunnerID, Registration: string(spec.Registration), GitLabURL: spec.GitLabURL, VMs: len(vms), States: states,
			MaxUnavailable: spec.MaxUnavailable, Policy: policyView(spec.Drain),
			GitLab: spec.HasGitLab, RunnerToken: spec.HasRunnerToken, Blind: blind(spec),
		})
	}
	return out, nil
}

// blind says what cannot be seen without a token (design.md section 4.2).
func blind(spec fleet.Spec) string {
	switch {
	case spec.HasGitLab:
		return ""
	case spec.HasRunnerToken:
		return "no GitLab token: drains rest on host evidence alone; jobs are not named, orphans are not found, and a late result is not waited for"
	default:
		return "neither a GitLab token nor a runner token: nothing can be proven, drains are refused"
	}
}

func (s *Server) listVMs(c *call, in *fleetInput) (*vmsOutput, error) {
	spec, err := s.Control.Spec(in.Fleet)
	if err != nil {
		return nil, err
	}
	vms, err := s.members(c, spec)
	if err != nil {
		return nil, err
	}
	return &vmsOutput{Body: VMs{VMs: vms}}, nil
}

// members joins the configuration, the rows and the unfinished operations.
func (s *Server) members(c *call, spec fleet.Spec) ([]VM, error) {
	rows, err := s.Store.VMs(c, spec.Name)
	if err != nil {
		return nil, err
	}
	ops, err := s.Store.Operations(c, control.Filter{Fleet: spec.Name, Unfinished: true, Limit: 1000})
	if err != nil {
		return nil, err
	}
	byName := map[string]fleet.VM{}
	for _, row := range rows {
		byName[row.VM] = row
	}
	work := map[string]*fleet.Operation{}
	for i := range ops {
		work[ops[i].VM] = &ops[i]
	}
	list := make([]VM, 0, len(spec.VMs))
	for _, name := range spec.VMs {
		row, op := byName[name], work[name]
		vm := VM{
			Fleet: spec.Name, VM: name, State: string(fleet.StateOf(row, op)), Instance: row.Instance,
			SystemID: row.SystemID, Entry: row.Entry, Address: row.Address, Image: row.Prepared.Image, UpdatedAt: stamp(row.UpdatedAt),
		}
		if op != nil {
			vm.Operation = new(operationView(op))
		}
		list = append(list, vm)
	}
	return list, nil
}
