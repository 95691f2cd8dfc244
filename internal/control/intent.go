package control

import (
	"fmt"
	"strings"
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
	// Newer says that the image is newer than what was asked for so far. Recreates
	// that earlier webhooks asked for, and that are still queued, give way to this
	// one; it attaches to none that may have looked its image up already.
	Newer bool `json:",omitempty"`
	By    fleet.Actor
	Key   string // Idempotency-Key; "" = none
	// What goes with the key and is no part of what is asked.
	KeyScope string `json:"-"` // keeps the keys of different callers apart
	Job      int64  `json:"-"` // the CI job that asks; 0 = none
	Last     string `json:"-"` // the VM that is worked on after the others; "" = in the order given
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

// differs says in which fields a policy is another than the patch wants, in the
// words of the API.
func (p PolicyPatch) differs(from fleet.DrainPolicy) string {
	return compare(from, p.Apply(from), "its %s is %v, not %v")
}

// changes says what has become of a policy.
func changes(before, after fleet.DrainPolicy) string {
	return compare(before, after, "%s from %v to %v")
}

// compare renders the fields in which two policies differ: name, one, other.
func compare(one, other fleet.DrainPolicy, format string) string {
	var list []string
	for _, field := range []struct {
		name       string
		one, other any
	}{
		{"cap", one.Cap, other.Cap},
		{"on_overrun", one.OnOverrun, other.OnOverrun},
		{"hard_cap", one.HardCap, other.HardCap},
		{"unreachable", one.Unreachable, other.Unreachable},
		{"reach_deadline", one.ReachDeadline, other.ReachDeadline},
		{"on_unproven", one.OnUnproven, other.OnUnproven},
	} {
		if field.one != field.other {
			list = append(list, fmt.Sprintf(format, field.name, field.one, field.other))
		}
	}
	return strings.Join(list, ", ")
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Answer is what became of an intent for one VM.
type Answer struct {
	Operation fleet.Operation
	Attached  bool // it ran already: same kind, same target, no other policy
}
