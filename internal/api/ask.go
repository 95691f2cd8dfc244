package api

import (
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// AskBody is what is asked for.
type AskBody struct {
	Kind     string       `json:"kind" enum:"recreate,delete,create,drain,undrain"`
	VMs      []string     `json:"vms" minItems:"1" maxItems:"1000" nullable:"false" doc:"Names of the fleet's VMs. One operation for each, all or none."`
	Image    string       `json:"image,omitempty" maxLength:"1024" doc:"The image of the new VM, in the provider's words."`
	Policy   *PolicyPatch `json:"policy,omitempty" doc:"What this request changes of the fleet's drain policy."`
	NoDrain  bool         `json:"no_drain,omitempty" doc:"With delete: do not wait for jobs."`
	Recreate bool         `json:"recreate,omitempty" doc:"With create: replace the VM if it exists."`
	TakeOver bool         `json:"take_over,omitempty" doc:"Take over the drop-in of another owner on the host, or a host that has obeyed orders which this journal does not know."`
	Parallel int          `json:"parallel,omitempty" minimum:"1" maximum:"1000" doc:"Raises max_unavailable for this request."`
	Why      string       `json:"why,omitempty" maxLength:"1024" doc:"The reason, for the journal."`
}

// PolicyPatch changes a drain policy for one request.
type PolicyPatch struct {
	Cap           string `json:"cap,omitempty" example:"10m" doc:"A duration such as 10m."`
	OnOverrun     string `json:"on_overrun,omitempty" enum:"proceed,wait,abort"`
	HardCap       string `json:"hard_cap,omitempty" example:"4h"`
	Unreachable   string `json:"unreachable,omitempty" enum:"fail,proceed"`
	ReachDeadline string `json:"reach_deadline,omitempty" example:"10m"`
	OnUnproven    string `json:"on_unproven,omitempty" enum:"abort,proceed"`
}

type askInput struct {
	Fleet string `path:"fleet" maxLength:"128"`
	Key   string `header:"Idempotency-Key" maxLength:"255" doc:"A repeat with the same key gets the same answer; keys live 7 days (draft-ietf-httpapi-idempotency-key-header)."`
	Body  AskBody
}

// Asked is what became of a request.
type Asked struct {
	Operations []Operation `json:"operations" nullable:"false" doc:"One for each VM, in the order asked for."`
	After      int64       `json:"after" doc:"Events after this id belong to these operations: where to begin to follow."`
	Follow     *Follow     `json:"follow,omitempty" doc:"For callers with an id_token: what to follow these operations with."`
	SelfDrain  *SelfDrain  `json:"self_drain,omitempty" doc:"The asking job runs, or may run, on a VM that it asks to drain: it must not wait for it."`
}

// Follow is a token that reads the operations of one request and nothing else.
type Follow struct {
	Token string    `json:"token" doc:"A bearer token for GET of these operations and of their events."`
	Until time.Time `json:"until" doc:"From this moment it is refused."`
}

// SelfDrain says that the asking job stands in its own way.
type SelfDrain struct {
	VM     string `json:"vm,omitempty" doc:"The VM that the job runs on; empty: not found."`
	Reason string `json:"reason" doc:"How it was found, or why it was not."`
	Sure   bool   `json:"sure" doc:"false: the job runs on this fleet's runner, on which VM is not known. Do not wait for any of them."`
}

type askOutput struct{ Body Asked }

func (s *Server) ask(c *call, in *askInput) (*askOutput, error) {
	intent, err := intentOf(in, c.by)
	if err != nil {
		return nil, err
	}
	if err := s.permit(c, &intent, false); err != nil {
		return nil, err
	}
	self := s.selfDrain(c, intent)
	if self != nil {
		intent.Last = self.VM
	}
	answers, err := s.Control.Ask(c, intent)
	if err != nil {
		return nil, err
	}
	out, err := s.asked(c, answers)
	if err != nil {
		return nil, err
	}
	out.Body.SelfDrain = stillAhead(self, answers)
	out.Body.Follow, err = s.follow(c, answers)
	return out, err
}

func (s *Server) plan(c *call, in *askInput) (*askOutput, error) {
	intent, err := intentOf(in, c.by)
	if err != nil {
		return nil, err
	}
	if err := s.permit(c, &intent, true); err != nil {
		return nil, err
	}
	answers, err := s.Control.Plan(c, intent)
	if err != nil {
		return nil, err
	}
	return s.asked(c, answers)
}

func (s *Server) asked(c *call, answers []control.Answer) (*askOutput, error) {
	out := &askOutput{Body: Asked{Operations: []Operation{}}}
	first := ""
	for i := range answers {
		view := operationView(&answers[i].Operation)
		view.Attached = answers[i].Attached
		out.Body.Operations = append(out.Body.Operations, view)
		if first == "" && !answers[i].Attached {
			first = view.ID
		}
	}
	var err error
	out.Body.After, err = s.beginning(c, first)
	return out, err
}

// follow makes the token that outlives a pipeline's id_token; nil for others.
func (s *Server) follow(c *call, answers []control.Answer) (*Follow, error) {
	if c.role != pipeline {
		return nil, nil
	}
	ids := make([]string, len(answers))
	for i := range answers {
		ids[i] = answers[i].Operation.ID
	}
	token, until, err := s.Pipelines.Follow(c, ids)
	if err != nil {
		return nil, err
	}
	return &Follow{Token: token, Until: until}, nil
}

// beginning is the event before the first one of an operation.
func (s *Server) beginning(c *call, operation string) (int64, error) {
	if operation == "" {
		return 0, nil
	}
	facts, err := s.Store.Facts(c, 0, operation, 1)
	if err != nil || len(facts) == 0 {
		return 0, err
	}
	return facts[0].ID - 1, nil
}

// intentOf is what a request means. Errors: CodeInvalid.
func intentOf(in *askInput, by fleet.Actor) (control.Intent, error) {
	b := in.Body
	by.Why = b.Why
	intent := control.Intent{
		Fleet: in.Fleet, VMs: b.VMs, Kind: fleet.Kind(b.Kind), Image: b.Image, NoDrain: b.NoDrain, Replace: b.Recreate,
		TakeOver: b.TakeOver, Parallel: b.Parallel, By: by, Key: in.Key,
	}
	if b.Policy == nil {
		return intent, nil
	}
	var err error
	intent.Policy, err = patchOf(b.Policy)
	return intent, err
}

// patchOf is what a policy in a request changes. Errors: CodeInvalid.
func patchOf(b *PolicyPatch) (p control.PolicyPatch, err error) {
	for _, d := range []struct {
		name, text string
		to         **time.Duration
	}{
		{"policy.cap", b.Cap, &p.Cap},
		{"policy.hard_cap", b.HardCap, &p.HardCap},
		{"policy.reach_deadline", b.ReachDeadline, &p.ReachDeadline},
	} {
		if d.text == "" {
			continue
		}
		long, err := length(d.name, d.text)
		if err != nil {
			return p, err
		}
		*d.to = &long
	}
	p.OnOverrun = word[fleet.Overrun](b.OnOverrun)
	p.Unreachable = word[fleet.Unreachable](b.Unreachable)
	p.OnUnproven = word[fleet.Unproven](b.OnUnproven)
	return p, nil
}

// word is nil for "", which leaves the choice to the fleet.
func word[T ~string](text string) *T {
	if text == "" {
		return nil
	}
	return new(T(text))
}
