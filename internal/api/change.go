package api

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// ChangeBody is how a drain that is under way is to change: extend or policy.
type ChangeBody struct {
	Extend *ExtendBody  `json:"extend,omitempty" doc:"Move the cap to a later moment."`
	Policy *PolicyPatch `json:"policy,omitempty" doc:"Put the drain under another policy; what is left out stays."`
	Why    string       `json:"why,omitempty" maxLength:"1024" doc:"The reason, for the journal."`
}

// ExtendBody moves a cap: exactly one of by, to and cap.
type ExtendBody struct {
	By  string     `json:"by,omitempty" example:"10m" doc:"Later by this, and hard_cap with it. A cap that has passed is counted from now."`
	To  *time.Time `json:"to,omitempty" doc:"To this moment; only when intake is stopped. hard_cap moves where it would pass before."`
	Cap string     `json:"cap,omitempty" example:"30m" doc:"To this long after the stop. hard_cap moves where it would pass before."`
}

type changeInput struct {
	ID   string `path:"id" maxLength:"64" doc:"The operation's id, or a beginning of it that only one has."`
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"A repeat with the same key changes nothing more. Pipelines must send one."`
	Body ChangeBody
}

// WhyBody is a reason.
type WhyBody struct {
	Why string `json:"why,omitempty" maxLength:"1024" doc:"The reason, for the journal."`
}

type skipInput struct {
	ID   string `path:"id" maxLength:"64" doc:"The operation's id, or a beginning of it that only one has."`
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"Pipelines must send one. Skipping twice is skipping once."`
	Body *WhyBody
}

func (s *Server) changes() {
	errors := []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}
	register(s, huma.Operation{
		OperationID: "change-operation", Method: http.MethodPatch, Path: "/api/v1/operations/{id}",
		Summary: "Extend a drain's cap, or put it under another policy; refused once the drain has a verdict or the delete is committed",
		Errors:  errors,
	}, s.change)
	register(s, huma.Operation{
		OperationID: "skip-drain", Method: http.MethodPost, Path: "/api/v1/operations/{id}/skip-drain",
		Summary: "Go on without waiting for jobs: they are recorded and cut; refused once the drain has a verdict or the delete is committed",
		Errors:  errors,
	}, s.skipDrain)
}

func (s *Server) change(c *call, in *changeInput) (*operationOutput, error) {
	b := in.Body
	ch := control.Change{By: c.by, Key: in.Key}
	ch.By.Why = b.Why
	if b.Extend != nil {
		e, err := extensionOf(b.Extend)
		if err != nil {
			return nil, err
		}
		ch.Extend = &e
	}
	if b.Policy != nil {
		p, err := patchOf(b.Policy)
		if err != nil {
			return nil, err
		}
		ch.Policy = &p
	}
	action := access.ActionExtend
	if ch.Policy != nil {
		action = access.ActionSetPolicy
	}
	return s.apply(c, in.ID, ch, action)
}

func (s *Server) skipDrain(c *call, in *skipInput) (*operationOutput, error) {
	ch := control.Change{Skip: true, By: c.by, Key: in.Key}
	if in.Body != nil {
		ch.By.Why = in.Body.Why
	}
	return s.apply(c, in.ID, ch, access.ActionSkipDrain)
}

// apply has control make the change, if the caller may ask for it.
func (s *Server) apply(c *call, id string, ch control.Change, action access.Action) (*operationOutput, error) {
	if err := s.permitChange(c, id, &ch, action); err != nil {
		return nil, err
	}
	op, err := s.Control.Change(c, id, ch)
	if err != nil {
		return nil, err
	}
	return &operationOutput{Body: operationView(op)}, nil
}

// extensionOf is what a request means. Errors: CodeInvalid.
func extensionOf(b *ExtendBody) (e fleet.Extension, err error) {
	if b.To != nil {
		e.To = *b.To
	}
	for _, d := range []struct {
		name, text string
		to         *time.Duration
	}{{"extend.by", b.By, &e.By}, {"extend.cap", b.Cap, &e.Cap}} {
		if d.text == "" {
			continue
		}
		if *d.to, err = length(d.name, d.text); err != nil {
			return e, err
		}
	}
	return e, nil
}

// length reads a duration. Errors: CodeInvalid, naming the field.
func length(field, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fleet.Errorf(fleet.CodeInvalid, "%s: %q is not a duration", field, text).WithHint("write 45s, 10m or 1h30m")
	}
	return d, nil
}
