package control

import (
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// FromWebhook is where an intent of a webhook comes from (fleet.Actor).
const FromWebhook = "webhook"

// Intent is what somebody asks for: one kind of operation on VMs of a fleet.
type Intent struct {
	Fleet    string
	VMs      []string
	Kind     fleet.Kind
	Image    string
	Policy   PolicyPatch
	NoDrain  bool
	Replace  bool // create --recreate
	TakeOver bool
	Parallel int
	// Newer lets the recreates that earlier webhooks asked for, and that are
	// still queued, give way to this one.
	Newer bool `json:",omitempty"`
	By    fleet.Actor
	Key   string // Idempotency-Key; "" = none
}

// PolicyPatch is what a request changes of its fleet's drain policy. Nil
// fields keep the fleet's.
type PolicyPatch struct {
	Cap           *time.Duration
	OnOverrun     *fleet.Overrun
	HardCap       *time.Duration
	Unreachable   *fleet.Unreachable
	ReachDeadline *time.Duration
	OnUnproven    *fleet.Unproven
}

// Apply yields the patched policy.
func (p PolicyPatch) Apply(base fleet.DrainPolicy) fleet.DrainPolicy {
	set(&base.Cap, p.Cap)
	set(&base.OnOverrun, p.OnOverrun)
	set(&base.HardCap, p.HardCap)
	set(&base.Unreachable, p.Unreachable)
	set(&base.ReachDeadline, p.ReachDeadline)
	set(&base.OnUnproven, p.OnUnproven)
	return base
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Answer is what became of an intent for one VM.
type Answer struct {
	Operation fleet.Operation
	Attached  bool // it ran already: same kind, same target
}
