package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// mayEnter says whether a caller may use a route at all. Routes that are not
// named here are closed to followers and pipelines: a new one begins closed.
// Errors: *access.Refusal, or those of the store.
func (s *Server) mayEnter(c echo.Context, who *visitor) error {
	switch who.role {
	case operator:
		return nil
	case pipeline:
		return s.pipelineMay(c, who)
	case follower:
		return followerMay(c, who)
	}
	return errNobody
}

// errNobody is for who has no role: it must never be seen.
var errNobody = &access.Refusal{
	Reason: access.ReasonScope, Text: "this caller may do nothing", Hint: "come with a static token, an id_token or a follow token",
}

// followerMay opens two routes, for the follower's operations alone.
func followerMay(c echo.Context, who *visitor) error {
	if c.Request().Method == http.MethodGet {
		switch c.Path() {
		case "/api/v1/operations/:id":
			if slices.Contains(who.follows, c.Param("id")) {
				return nil
			}
		case "/api/v1/events":
			asked, err := operationsNamed(c)
			if err != nil {
				return err
			}
			if len(asked) > 0 && !slices.ContainsFunc(asked, func(id string) bool { return !slices.Contains(who.follows, id) }) {
				return nil
			}
		}
	}
	return &access.Refusal{
		Reason: access.ReasonScope, Text: "a follow token reads the operations of its request, and their events, and nothing else",
		Hint: "GET /api/v1/operations/ID, or /api/v1/events?operation=ID, with an id that came with the token",
	}
}

// maxNamed is how many operations a request for events may name; the route's
// own limit is the same, but is looked at after the caller.
const maxNamed = 200

// operationsNamed are the operations that a request for events is about, each
// once: repeated parameters, or one with commas. Errors: CodeInvalid.
func operationsNamed(c echo.Context) ([]string, error) {
	all := strings.Split(strings.Join(c.QueryParams()["operation"], ","), ",")
	if len(all) > maxNamed {
		return nil, fleet.Errorf(fleet.CodeInvalid, "%d operations are named, at most %d may be", len(all), maxNamed).
			WithHint("name fewer in one request")
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 1 && all[0] == "" {
		return nil, nil
	}
	return all, nil
}

// pipelineMay opens what pipelines need. What they ask for on a fleet is judged
// by the policies, here or where the body has been read (permit).
func (s *Server) pipelineMay(c echo.Context, who *visitor) error {
	ctx := c.Request().Context()
	read := func(fleetName string) error {
		return s.Pipelines.Permit(ctx, who.claims, access.Request{Action: access.ActionRead, Fleet: fleetName})
	}
	switch c.Request().Method + " " + c.Path() {
	case "POST /api/v1/fleets/:fleet/operations", "POST /api/v1/fleets/:fleet/operations/plan":
		return nil // judged with the body, in permit
	case "PATCH /api/v1/operations/:id", "POST /api/v1/operations/:id/skip-drain":
		return nil // judged with the body, in permitChange
	case "GET /api/v1/fleets":
		return nil // filtered, by reads
	case "GET /api/v1/fleets/:fleet/vms", "GET /api/v1/fleets/:fleet/doctor":
		return read(c.Param("fleet"))
	case "GET /api/v1/operations":
		if name := c.QueryParam("fleet"); name != "" {
			return read(name)
		}
		return pipelineScope("name the fleet: /api/v1/operations?fleet=NAME")
	case "GET /api/v1/operations/:id":
		op, err := s.Store.FindOperation(ctx, c.Param("id"))
		if err != nil {
			return err
		}
		return read(op.Fleet)
	case "GET /api/v1/events":
		return s.mayFollow(c, read)
	}
	return pipelineScope("a person does that, with a token of server.tokens")
}

func pipelineScope(hint string) error {
	return &access.Refusal{Reason: access.ReasonScope, Text: "this is not open to pipelines", Hint: hint}
}

// mayFollow asks about the fleets of the operations that are named, about each
// once.
func (s *Server) mayFollow(c echo.Context, read func(fleetName string) error) error {
	asked, err := operationsNamed(c)
	if err != nil {
		return err
	}
	if len(asked) == 0 {
		return pipelineScope("name operations: /api/v1/events?operation=ID")
	}
	seen := map[string]bool{}
	for _, id := range asked {
		op, err := s.Store.Operation(c.Request().Context(), id)
		if err != nil {
			return err
		}
		if seen[op.Fleet] {
			continue
		}
		if err := read(op.Fleet); err != nil {
			return err
		}
		seen[op.Fleet] = true
	}
	return nil
}

// reads says whether the caller may look at a fleet.
func (s *Server) reads(c *call, fleetName string) bool {
	switch c.role {
	case operator:
		return true
	case pipeline:
		return s.Pipelines.May(c.claims, access.Request{Action: access.ActionRead, Fleet: fleetName})
	default:
		return false
	}
}

// permit judges what somebody asks for, and ties a pipeline's id_token to this
// request. Errors: *access.Refusal, or those of the store.
func (s *Server) permit(c *call, intent *control.Intent, planned bool) error {
	switch c.role {
	case operator:
		return nil
	case pipeline:
		return s.permitPipeline(c, intent, planned)
	default:
		return errNobody
	}
}

func (s *Server) permitPipeline(c *call, intent *control.Intent, planned bool) error {
	own := s.Fleets[intent.Fleet].Drain
	wanted := access.Request{
		Action: access.Action(intent.Kind), Fleet: intent.Fleet, VMs: intent.VMs,
		Overrides: overrides(intent, own), WaitsUntil: waitsUntil(intent, own),
	}
	if intent.Kind == fleet.KindCreate && intent.Replace {
		wanted.Action = access.Action(fleet.KindRecreate)
	}
	if planned {
		wanted.Action = access.ActionPlan
	}
	if intent.Policy.Cap != nil {
		wanted.Cap = *intent.Policy.Cap
	}
	if err := s.Pipelines.Permit(c, c.claims, wanted); err != nil || planned {
		return err
	}
	intent.KeyScope, intent.Job = c.claims.Scope(), c.claims.Job
	return s.Pipelines.Bind(c, c.claims, intent.Key)
}
