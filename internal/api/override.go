package api

import (
	"fmt"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// gentleFirst are the overrun policies by what they do to a job that runs when
// the cap passes: it goes on here, it has until the hard cap, it is ended.
var gentleFirst = []fleet.Overrun{fleet.OverrunAbort, fleet.OverrunWait, fleet.OverrunProceed}

// overrides are the parts of an intent that weaken what the fleet's own policy
// promises its jobs, or that go beyond its budget, in words. What is gentler
// than the fleet's policy is no override.
func overrides(in *control.Intent, own fleet.DrainPolicy) (parts []string) {
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	p := in.Policy
	add(in.NoDrain, "no_drain")
	add(in.TakeOver, "take_over")
	add(in.Parallel > 0, "parallel")
	if p.Cap != nil {
		add(*p.Cap < own.Cap, "a cap of %s, shorter than the fleet's own %s", *p.Cap, own.Cap)
	}
	if p.OnOverrun != nil {
		add(harsher(*p.OnOverrun, own.OnOverrun), "on_overrun %s, harsher than the fleet's own %s", *p.OnOverrun, own.OnOverrun)
	}
	add(p.HardCap != nil, "hard_cap")
	add(p.Unreachable != nil, "unreachable")
	add(p.ReachDeadline != nil, "reach_deadline")
	add(p.OnUnproven != nil, "on_unproven")
	return parts
}

// harsher compares by gentleFirst; a word that is not on the list is no better
// than the worst.
func harsher(asked, own fleet.Overrun) bool {
	at := slices.Index(gentleFirst, asked)
	return at < 0 || at > slices.Index(gentleFirst, own)
}

// waitsUntil is how long after the stop a drain ends that is asked to wait for
// jobs beyond its cap; 0 = the request does not ask for that.
func waitsUntil(in *control.Intent, own fleet.DrainPolicy) time.Duration {
	if in.Policy.OnOverrun == nil || *in.Policy.OnOverrun != fleet.OverrunWait || own.OnOverrun == fleet.OverrunWait {
		return 0
	}
	return in.Policy.Apply(own).HardCap
}
