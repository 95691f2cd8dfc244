package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

type idInput struct {
	ID string `path:"id" maxLength:"64" doc:"The operation's id, or a beginning of it that only one has."`
}

type operationOutput struct{ Body Operation }

type listInput struct {
	Fleet      string `query:"fleet"`
	VM         string `query:"vm"`
	Unfinished bool   `query:"unfinished" doc:"Only those that have not ended."`
	Limit      int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// Operations is a list, newest first.
type Operations struct {
	Operations []Operation `json:"operations" nullable:"false"`
}

type listOutput struct{ Body Operations }

// ResumeBody is how to go on.
type ResumeBody struct {
	Image string `json:"image,omitempty" maxLength:"1024" doc:"A corrected image, while it is held in creating."`
}

type cancelInput struct {
	ID   string `path:"id" maxLength:"64" doc:"The operation's id, or a beginning of it that only one has."`
	Body *WhyBody
}

type resumeInput struct {
	ID   string `path:"id" maxLength:"64" doc:"The operation's id, or a beginning of it that only one has."`
	Body ResumeBody
}

func (s *Server) operations() {
	register(s, huma.Operation{
		OperationID: "ask", Method: http.MethodPost, Path: "/api/v1/fleets/{fleet}/operations",
		Summary:       "Ask for operations on VMs",
		DefaultStatus: http.StatusAccepted,
		Errors:        []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, s.ask)
	register(s, huma.Operation{
		OperationID: "plan", Method: http.MethodPost, Path: "/api/v1/fleets/{fleet}/operations/plan",
		Summary: "Say what asking would do; stores nothing",
		Errors:  []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, s.plan)
	register(s, huma.Operation{
		OperationID: "list-operations", Method: http.MethodGet, Path: "/api/v1/operations", Summary: "List operations, newest first",
	}, s.list)
	register(s, huma.Operation{
		OperationID: "get-operation", Method: http.MethodGet, Path: "/api/v1/operations/{id}", Summary: "Show an operation",
		Errors: []int{http.StatusNotFound},
	}, s.get)
	register(s, huma.Operation{
		OperationID: "cancel-operation", Method: http.MethodPost, Path: "/api/v1/operations/{id}/cancel",
		Summary: "End an operation and give intake back; refused once the delete is committed",
		Errors:  []int{http.StatusNotFound, http.StatusConflict},
	}, s.cancel)
	register(s, huma.Operation{
		OperationID: "resume-operation", Method: http.MethodPost, Path: "/api/v1/operations/{id}/resume",
		Summary: "Go on with an operation that is held or backing off",
		Errors:  []int{http.StatusNotFound, http.StatusConflict},
	}, s.resume)
	s.changes()
}

func (s *Server) list(c *call, in *listInput) (*listOutput, error) {
	ops, err := s.Store.Operations(c, control.Filter{Fleet: in.Fleet, VM: in.VM, Unfinished: in.Unfinished, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := &listOutput{Body: Operations{Operations: []Operation{}}}
	for i := range ops {
		view, err := s.whole(c, &ops[i])
		if err != nil {
			return nil, err
		}
		out.Body.Operations = append(out.Body.Operations, *view)
	}
	return out, nil
}

func (s *Server) get(c *call, in *idInput) (*operationOutput, error) {
	op, err := s.Store.FindOperation(c, in.ID)
	if err != nil {
		return nil, err
	}
	view, err := s.whole(c, op)
	if err != nil {
		return nil, err
	}
	return &operationOutput{Body: *view}, nil
}

// whole is an operation with what followed it.
func (s *Server) whole(c *call, op *fleet.Operation) (*Operation, error) {
	view := operationView(op)
	chores, err := s.Store.Chores(c, op.ID)
	if err != nil {
		return nil, err
	}
	view.Chores = choreViews(chores)
	facts, err := s.Store.Facts(c, 0, op.ID, 1000)
	if err != nil {
		return nil, err
	}
	for _, f := range facts {
		if f.Kind == fleet.FactOrphan || f.Kind == fleet.FactCut {
			view.Found = append(view.Found, f.Text)
		}
	}
	return &view, nil
}

func (s *Server) cancel(c *call, in *cancelInput) (*operationOutput, error) {
	by := c.by
	if in.Body != nil {
		by.Why = in.Body.Why
	}
	op, err := s.Control.Cancel(c, in.ID, by)
	if err != nil {
		return nil, err
	}
	return &operationOutput{Body: operationView(op)}, nil
}

func (s *Server) resume(c *call, in *resumeInput) (*operationOutput, error) {
	op, err := s.Control.Resume(c, in.ID, in.Body.Image, c.by)
	if err != nil {
		return nil, err
	}
	return &operationOutput{Body: operationView(op)}, nil
}
