package worlds

import (
	"math"
	"math/rand/v2"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// drawing makes plans out of a seed.
type drawing struct{ *rand.Rand }

// Draw makes the plan of a seed.
func Draw(seed uint64) Plan {
	d := drawing{rand.New(rand.NewPCG(seed, 0x5117ce))} //nolint:gosec // a story, no secret
	p := Plan{Seed: seed, Slow: 1}
	if d.one(8) {
		p.Slow = 4
	}
	n := 1 + min(d.IntN(5), d.IntN(5))
	for range n {
		p.VMs = append(p.VMs, VMPlan{Trait: d.trait(), Concurrent: 1 + d.IntN(2)})
	}
	p.Fleet = FleetPlan{
		MaxUnavailable: 1 + d.IntN(2), NoGitLab: d.one(20), NoToken: d.one(6), Gate: d.pick(2, 5, 10) * time.Minute, Policy: d.policy(),
	}
	if p.Fleet.NoGitLab {
		p.Fleet.NoToken = false
	}
	p.GitLab = GitLabPlan{NoExecution: d.one(40), TwoPhase: d.one(4), Answer: time.Duration(d.IntN(800)) * time.Millisecond}
	if d.one(3) {
		p.GitLab.Skew = time.Duration(d.IntN(7200)-3600) * time.Second
	}
	for range d.IntN(7*n + 1) {
		p.Jobs = append(p.Jobs, JobPlan{At: d.within(20 * time.Minute), Length: d.length()})
	}
	for range 1 + min(d.IntN(5), d.IntN(5)) {
		p.Asks = append(p.Asks, d.ask(n))
	}
	for range d.IntN(8) {
		p.Acts = append(p.Acts, d.act(n))
	}
	for range max(0, d.IntN(6)-2) {
		p.Changes = append(p.Changes, d.change(n))
	}
	drawJobs(seed, n, &p)
	drawRegistration(seed, &p)
	return p
}

// one in n.
func (d drawing) one(n int) bool { return d.IntN(n) == 0 }

func (d drawing) pick(list ...int) time.Duration { return time.Duration(list[d.IntN(len(list))]) }

// within is a moment, to the millisecond.
func (d drawing) within(most time.Duration) time.Duration {
	return time.Duration(d.Int64N(int64(most/time.Millisecond))) * time.Millisecond
}

// length of a job: log-normal, the median a minute and a half.
func (d drawing) length() time.Duration {
	s := math.Exp(math.Log(90) + 1.2*d.NormFloat64())
	return time.Duration(min(max(s, 1), 3000)*1000) * time.Millisecond
}

func (d drawing) trait() Trait {
	if !d.one(5) {
		return Plain
	}
	list := []Trait{Off, UnitDown, Never, Unregisters, Expiry, Foreign, Missing, KeepsID, Leftover}
	return list[d.IntN(len(list))]
}

func (d drawing) policy() PolicyPlan {
	p := PolicyPlan{
		Cap: d.pick(30, 60, 180, 300, 600) * time.Second, Reach: d.pick(30, 60, 300, 600) * time.Second,
		OnOverrun: string(fleet.OverrunProceed), Unreachable: string(fleet.UnreachableFail), Unproven: string(fleet.UnprovenAbort),
	}
	p.HardCap = p.Cap + d.pick(0, 2, 10, 60)*time.Minute
	switch d.IntN(4) {
	case 0:
		p.OnOverrun = string(fleet.OverrunWait)
	case 1:
		p.OnOverrun = string(fleet.OverrunAbort)
	}
	if d.one(4) {
		p.Unreachable = string(fleet.UnreachableProceed)
	}
	if d.one(4) {
		p.Unproven = string(fleet.UnprovenProceed)
	}
	return p
}

func (d drawing) ask(n int) AskPlan {
	kinds := []fleet.Kind{fleet.KindRecreate, fleet.KindRecreate, fleet.KindRecreate, fleet.KindDrain, fleet.KindDrain, fleet.KindUndrain, fleet.KindDelete, fleet.KindCreate}
	a := AskPlan{At: d.within(15 * time.Minute), Kind: string(kinds[d.IntN(len(kinds))]), VMs: []int{d.IntN(n)}}
	for i := range n {
		if i != a.VMs[0] && d.one(3) {
			a.VMs = append(a.VMs, i)
		}
	}
	if d.one(2) {
		p := d.policy()
		a.Policy = &p
	}
	if d.one(4) {
		a.Parallel = 1 + d.IntN(3)
	}
	a.TakeOver = d.one(10)
	switch fleet.Kind(a.Kind) {
	case fleet.KindDelete:
		a.NoDrain = d.one(5)
	case fleet.KindCreate:
		a.Replace = d.one(2)
	default:
	}
	return a
}

// happenings are the acts, how long each lasts, and how often it is drawn.
var happenings = []struct {
	do     string
	least  int // seconds
	most   int
	weight int
	point  bool // it is best aimed at a point
}{
	{"kill", 1, 120, 8, true},
	{"shut down", 1, 60, 2, true},
	{"pause", 2, 120, 2, true},
	{"lose wakes", 30, 600, 1, false},
	{"cancel", 0, 0, 4, true},
	{"undrain", 0, 0, 3, true},
	{"resume", 0, 0, 1, false},
	{"job at stop", 0, 0, 6, true},
	{"gitlab down", 5, 1200, 4, true},
	{"gitlab 429", 5, 300, 1, true},
	{"gitlab stale", 10, 300, 2, true},
	{"gitlab short", 10, 300, 1, true},
	{"gitlab mute", 10, 600, 1, true},
	{"hide manager", 10, 600, 1, true},
	{"cloud down", 5, 600, 2, true},
	{"cloud blind", 5, 120, 2, true},
	{"fail create", 0, 0, 3, false},
	{"fail delete", 0, 0, 2, false},
	{"lose create", 0, 0, 2, false},
	{"lose delete", 0, 0, 2, false},
	{"late create", 5, 90, 2, false},
	{"late delete", 5, 60, 2, false},
	{"linger disk", 5, 120, 1, false},
	{"bad image", 0, 0, 1, false},
	{"lose orders", 0, 0, 3, false},
	{"late order", 5, 90, 3, false},
	{"no sudo", 10, 600, 1, true},
	{"unreachable", 5, 1200, 4, true},
	{"hang", 5, 600, 2, true},
	{"empty answer", 1, 30, 2, true},
	{"reboot", 15, 90, 4, true},
	{"power off", 10, 1200, 2, true},
	{"start unit", 0, 0, 5, true},
	{"stop unit", 0, 0, 3, true},
	{"term runner", 0, 0, 1, true},
	{"kill runner", 0, 0, 2, true},
	{"delete vm", 0, 0, 2, true},
	{"replace vm", 0, 0, 3, true},
}

// aims are the points at which things are worst.
var aims = []string{
	"commit:before", "commit:after", "commit:before", "commit:after",
	"inspect:answer", "look:request", "look:answer", "await:request", "await:answer", "glance:request", "glance:answer",
	"stop:request", "stop:effect", "stop:answer", "start:request", "start:effect", "start:answer",
	"release:request", "release:effect", "end:request", "end:effect",
	"describe:request", "describe:answer", "check:answer", "list:answer", "prepare:answer",
	"delete:request", "delete:effect", "delete:answer", "create:request", "create:effect", "create:answer",
	"remains:answer", "read:request", "read:answer", "managers:request", "managers:answer", "deregister:request", "token:request",
}

func (d drawing) act(n int) Act {
	total := 0
	for _, h := range happenings {
		total += h.weight
	}
	at := d.IntN(total)
	i := 0
	for at >= happenings[i].weight {
		at -= happenings[i].weight
		i++
	}
	h := happenings[i]
	a := Act{Do: h.do, VM: d.IntN(n), At: d.within(25 * time.Minute)}
	if h.most > 0 {
		a.For = time.Duration(h.least+min(d.IntN(h.most-h.least+1), d.IntN(h.most-h.least+1))) * time.Second
	}
	if h.point && !d.one(3) {
		a.At, a.Point = 0, aims[d.IntN(len(aims))]
		a.Nth = 1 + min(d.IntN(30), d.IntN(30))
	}
	switch h.do {
	case "job at stop":
		a.At, a.Point, a.Nth = 0, "stop:request", 1+min(d.IntN(3), d.IntN(3))
	case "fail create":
		a.Kind, a.Times = d.word("stockout", "quota", "unavailable", "invalid", "image_missing", "forbidden", "conflict"), 1+d.IntN(3)
	case "fail delete":
		a.Kind, a.Times = d.word("unavailable", "forbidden", "invalid", "rate_limited"), 1+d.IntN(2)
	case "lose create", "lose delete", "lose orders":
		a.Times = 1 + d.IntN(3)
	}
	return a
}

// change is what a person changes of a drain, at any time or at the worst.
func (d drawing) change(n int) Act {
	a := Act{Do: d.word("extend", "extend", "extend", "skip drain", "set policy", "set policy"), VM: d.IntN(n), At: d.within(20 * time.Minute)}
	if d.one(2) {
		a.At, a.Point, a.Nth = 0, aims[d.IntN(len(aims))], 1+min(d.IntN(30), d.IntN(30))
	}
	switch a.Do {
	case "extend":
		a.For, a.Kind = d.pick(5, 30, 60, 300, 1200)*time.Second, d.word("by", "by", "to", "cap")
	case "set policy":
		p := d.policy()
		a.Policy = &p
	}
	return a
}

func (d drawing) word(list ...string) string { return list[d.IntN(len(list))] }
