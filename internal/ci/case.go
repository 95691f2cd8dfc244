package ci

import (
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

// Case is one VM in the reports.
type Case struct {
	VM      string
	ID      string // the operation's; "" = there is none
	State   State
	URL     string // where to look; "" = there is no operation
	Took    time.Duration
	Said    string   // how it ended, in one line
	Reasons []string // why, and what to do next
	Broken  bool     // the job ended before it could say how the VM fared
	Links   []Link   // jobs that were cut
}

// Link is a place to look at.
type Link struct{ Label, URL string }

// Report is what a job leaves.
type Report struct {
	Fleet string
	URL   string // the controller's
	Cases []Case
}

// State is the worst of all VMs.
func (r Report) State() State {
	state := StateSucceeded
	for i := range r.Cases {
		state = worst(state, r.Cases[i].State)
	}
	return state
}

// unasked is the report of a job that has nothing to show for itself but why:
// it was refused by a rule, or nobody could be asked.
func unasked(server string, o Order, state State, why []string) Report {
	r := Report{Fleet: o.Fleet, URL: server}
	for i, vm := range o.VMs {
		if slices.Contains(o.VMs[:i], vm) {
			continue // that may be what is wrong
		}
		c := Case{VM: vm, State: state, Broken: true, Said: o.Fleet + "/" + vm + ": not asked for"}
		if len(why) > 0 {
			c.Said, c.Reasons = why[0], why
		}
		r.Cases = append(r.Cases, c)
	}
	return r
}

// reported is the report about operations; broken says why the job ended
// before they did, nil that it did not.
func reported(server, fleetName string, ops []client.Operation, broken []string) Report {
	r := Report{Fleet: fleetName, URL: server}
	for i := range ops {
		op := &ops[i]
		c := Case{
			VM: clean(op.Vm), ID: clean(op.Id), State: stateOf(op), URL: link(server, op.Id), Took: took(op),
			Said: headline(op), Reasons: reasons(op),
		}
		if c.State == StateRunning && len(broken) > 0 {
			c.Broken, c.Reasons = true, append(c.Reasons, broken...)
		}
		for _, job := range cut(op) {
			if u := deref(job.Url); webURL(u) {
				c.Links = append(c.Links, Link{Label: c.VM + ": cut job " + clean(deref(job.Name)), URL: u})
			}
		}
		r.Cases = append(r.Cases, c)
	}
	return r
}
