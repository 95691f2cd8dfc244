package real

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// plan is everything that is to happen in a world. It is plain data: printed
// when the world fails, and the same for a seed whenever it is drawn.
type plan struct {
	Seed        uint64
	VMs         int
	Concurrent  int // jobs at a time on a VM
	Unavailable int // max_unavailable
	Policy      policyPlan
	AssignDelay time.Duration `json:",omitempty"` // of GitLab's answers to a job request: who stops meanwhile orphans a job
	Jobs        []jobPlan
	Asks        []askPlan
	Acts        []act
}

// policyPlan is a drain policy.
type policyPlan struct {
	Cap, HardCap, Reach    time.Duration
	OnOverrun, Unreachable string
}

// jobPlan is a job that somebody pushes.
type jobPlan struct{ At, Script, After time.Duration }

// askPlan is an intent.
type askPlan struct {
	At       time.Duration
	Kind     fleet.Kind
	VMs      []int
	NoDrain  bool        `json:",omitempty"`
	Replace  bool        `json:",omitempty"`
	Parallel int         `json:",omitempty"`
	Policy   *policyPlan `json:",omitempty"`
}

// act is something that goes wrong.
type act struct {
	At    time.Duration
	Do    string
	VM    int           `json:",omitempty"`
	For   time.Duration `json:",omitempty"`
	Times int           `json:",omitempty"`
}

// hurtsGitLab says whether calls to GitLab fail at some time.
func (p plan) hurtsGitLab() bool {
	return slices.ContainsFunc(p.Acts, func(a act) bool { return strings.HasPrefix(a.Do, "gitlab") })
}

func (p plan) String() string {
	raw, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// drawing makes plans out of a seed.
type drawing struct{ *rand.Rand }

// draw makes the plan of a seed. Everything begins within its first five
// seconds.
func draw(seed uint64) plan {
	d := drawing{rand.New(rand.NewPCG(seed, 0x7e41))}
	n := 1 + min(d.IntN(3), d.IntN(3))
	p := plan{Seed: seed, VMs: n, Concurrent: 1 + d.IntN(2), Unavailable: 1 + d.IntN(2), Policy: d.policy()}
	if d.one(2) {
		p.AssignDelay = d.between(50, 400)
	}
	for range 1 + d.IntN(4*n) {
		p.Jobs = append(p.Jobs, jobPlan{At: d.between(0, 4000), Script: d.between(200, 3000), After: d.between(0, 300)})
	}
	for range 1 + d.IntN(2) {
		a := d.ask(n)
		p.Asks = append(p.Asks, a)
		for range d.IntN(4) { // the stop comes a few hundred milliseconds after the asking
			p.Jobs = append(p.Jobs, jobPlan{At: a.At + d.between(0, 400), Script: d.between(200, 3000)})
		}
		if d.one(4) { // somebody thinks better of it while it drains
			p.Acts = append(p.Acts, act{At: a.At + d.between(300, 3000), Do: "cancel", VM: a.VMs[0]})
		}
	}
	for range d.IntN(3) {
		p.Acts = append(p.Acts, act{At: d.between(0, 5000), Do: "kill sluice", For: d.between(1, 600)})
	}
	for range d.IntN(4) {
		p.Acts = append(p.Acts, d.act(n))
	}
	return p
}

// one in n.
func (d drawing) one(n int) bool { return d.IntN(n) == 0 }

// between yields milliseconds.
func (d drawing) between(least, most int) time.Duration {
	return time.Duration(least+d.IntN(most-least+1)) * time.Millisecond
}

func (d drawing) policy() policyPlan {
	p := policyPlan{Cap: d.between(500, 5000), Reach: d.between(1500, 6000), OnOverrun: string(fleet.OverrunProceed), Unreachable: string(fleet.UnreachableFail)}
	p.HardCap = p.Cap + d.between(0, 2000)
	switch d.IntN(5) {
	case 0:
		p.OnOverrun = string(fleet.OverrunWait)
	case 1:
		p.OnOverrun = string(fleet.OverrunAbort)
	}
	if d.one(4) {
		p.Unreachable = string(fleet.UnreachableProceed)
	}
	return p
}

func (d drawing) ask(n int) askPlan {
	kinds := []fleet.Kind{fleet.KindRecreate, fleet.KindRecreate, fleet.KindRecreate, fleet.KindRecreate, fleet.KindDrain, fleet.KindUndrain, fleet.KindDelete, fleet.KindCreate}
	a := askPlan{At: d.between(0, 2500), Kind: kinds[d.IntN(len(kinds))], VMs: []int{d.IntN(n)}}
	for i := range n {
		if i != a.VMs[0] && d.one(2) {
			a.VMs = append(a.VMs, i)
		}
	}
	if d.one(3) {
		p := d.policy()
		a.Policy = &p
	}
	if d.one(4) {
		a.Parallel = 1 + d.IntN(3)
	}
	switch a.Kind {
	case fleet.KindDelete:
		a.NoDrain = d.one(4)
	case fleet.KindCreate:
		a.Replace = !d.one(4)
	}
	return a
}

// happenings are the acts beside the kills of Sluice: how long each lasts, in
// milliseconds, and how often it is drawn.
var happenings = []struct {
	do          string
	least, most int
	weight      int
}{
	{"stop sluice", 1, 300, 2},
	{"kill sshd", 200, 4000, 4},
	{"kill runner", 0, 0, 1},
	{"power cut", 0, 0, 2},
	{"hang", 200, 2500, 1},
	{"cut ssh answer", 0, 0, 4},
	{"empty answers", 0, 0, 2},
	{"gitlab down", 200, 5000, 5},
	{"gitlab slow results", 200, 3000, 2},
	{"gitlab drops", 200, 2000, 2},
	{"cloud down", 200, 3000, 3},
	{"lose cloud answers", 0, 0, 4},
	{"fail create", 0, 0, 2},
	{"cancel", 0, 0, 2},
}

func (d drawing) act(n int) act {
	total := 0
	for _, h := range happenings {
		total += h.weight
	}
	at, i := d.IntN(total), 0
	for at >= happenings[i].weight {
		at -= happenings[i].weight
		i++
	}
	h := happenings[i]
	a := act{At: d.between(0, 5000), Do: h.do, VM: d.IntN(n), Times: 1 + d.IntN(3)}
	if h.most > 0 {
		a.For = d.between(h.least, h.most)
	}
	return a
}
