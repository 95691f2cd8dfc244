package worlds

import (
	"slices"
	"time"
)

// Shrink makes a failing plan smaller as long as it breaks the same promise:
// fewer acts, jobs, intents and VMs, then simpler ones. It tries at most tries
// plans.
func Shrink(p Plan, rule string, tries int) Plan {
	fails := func(q Plan) bool {
		if tries <= 0 {
			return false
		}
		tries--
		v := Run(q, false).Violation
		return v != nil && v.Rule == rule
	}
	for again := true; again; {
		again = false
		for _, smaller := range []func(Plan, func(Plan) bool) (Plan, bool){fewerActs, fewerChanges, fewerJobs, fewerAsks, fewerVMs, simpler} {
			q, found := smaller(p, fails)
			if found {
				p, again = q, true
			}
		}
	}
	return p
}

// fewer leaves elements out, half of them at first.
func fewer[T any](list []T, ok func([]T) bool) ([]T, bool) {
	found := false
	for size := max(len(list)/2, 1); size >= 1; size /= 2 {
		for at := 0; at < len(list); {
			rest := slices.Delete(slices.Clone(list), at, min(at+size, len(list)))
			if ok(rest) {
				list, found = rest, true
				continue
			}
			at += size
		}
	}
	return list, found
}

func fewerActs(p Plan, fails func(Plan) bool) (Plan, bool) {
	var found bool
	p.Acts, found = fewer(p.Acts, func(list []Act) bool { p.Acts = list; return fails(p) })
	return p, found
}

func fewerChanges(p Plan, fails func(Plan) bool) (Plan, bool) {
	var found bool
	p.Changes, found = fewer(p.Changes, func(list []Act) bool { p.Changes = list; return fails(p) })
	return p, found
}

func fewerJobs(p Plan, fails func(Plan) bool) (Plan, bool) {
	var found bool
	p.Jobs, found = fewer(p.Jobs, func(list []JobPlan) bool { p.Jobs = list; return fails(p) })
	return p, found
}

func fewerAsks(p Plan, fails func(Plan) bool) (Plan, bool) {
	var found bool
	p.Asks, found = fewer(p.Asks, func(list []AskPlan) bool { p.Asks = list; return fails(p) })
	return p, found
}

func fewerVMs(p Plan, fails func(Plan) bool) (Plan, bool) {
	found := false
	for i := len(p.VMs) - 1; i >= 0 && len(p.VMs) > 1; i-- {
		if q := p.withoutVM(i); fails(q) {
			p, found = q, true
		}
	}
	return p, found
}

// withoutVM leaves a VM out, and what was meant for it.
func (p Plan) withoutVM(gone int) Plan {
	p.VMs = slices.Delete(slices.Clone(p.VMs), gone, gone+1)
	renumber := func(i int) int {
		if i > gone {
			return i - 1
		}
		return i
	}
	var asks []AskPlan
	for _, a := range p.Asks {
		var vms []int
		for _, i := range a.VMs {
			if i != gone {
				vms = append(vms, renumber(i))
			}
		}
		if a.VMs = vms; len(vms) > 0 {
			asks = append(asks, a)
		}
	}
	others := func(list []Act) (acts []Act) {
		for _, a := range list {
			if a.VM != gone || a.Point == "commit:before" || a.Point == "commit:after" {
				a.VM = min(renumber(a.VM), len(p.VMs)-1)
				acts = append(acts, a)
			}
		}
		return acts
	}
	p.Asks, p.Acts, p.Changes = asks, others(p.Acts), others(p.Changes)
	return p
}

// simpler takes away what is special about what is left.
func simpler(p Plan, fails func(Plan) bool) (Plan, bool) {
	found := false
	try := func(change func(*Plan)) {
		q := p
		q.VMs, q.Asks, q.Acts, q.Jobs = slices.Clone(p.VMs), slices.Clone(p.Asks), slices.Clone(p.Acts), slices.Clone(p.Jobs)
		change(&q)
		if q.JSON() != p.JSON() && fails(q) {
			p, found = q, true
		}
	}
	try(func(q *Plan) { q.Slow = 1 })
	try(func(q *Plan) { q.GitLab = GitLabPlan{Answer: q.GitLab.Answer} })
	try(func(q *Plan) { q.Fleet.NoToken = false })
	try(func(q *Plan) { q.Fleet.Registration, q.Fleet.NoRemoval = "", false })
	for i := range p.VMs {
		try(func(q *Plan) { q.VMs[i] = VMPlan{Trait: q.VMs[i].Trait, Concurrent: 1} })
		try(func(q *Plan) { q.VMs[i].Trait = Plain })
	}
	for i := range p.Asks {
		try(func(q *Plan) { q.Asks[i].Policy = nil })
		try(func(q *Plan) { q.Asks[i].TakeOver, q.Asks[i].Parallel = false, 0 })
		try(func(q *Plan) { q.Asks[i].VMs = q.Asks[i].VMs[:1] })
		try(func(q *Plan) { q.Asks[i].At = q.Asks[i].At.Round(10 * time.Second) })
	}
	for i := range p.Acts {
		try(func(q *Plan) { q.Acts[i].Times = min(q.Acts[i].Times, 1) })
		try(func(q *Plan) { q.Acts[i].For /= 2 })
	}
	for i := range p.Jobs {
		try(func(q *Plan) { q.Jobs[i].Length = q.Jobs[i].Length.Round(time.Second) })
	}
	return p, found
}
