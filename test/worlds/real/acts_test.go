package real

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// push queues a job; whichever VM asks first gets it.
func (w *world) push(j jobPlan) {
	id := w.GitLab().Enqueue(simgitlab.JobSpec{Name: "build", Duration: j.Script, AfterDuration: j.After})
	w.say("gitlab  job %d is pushed; it takes %s and %s", id, j.Script, j.After)
}

// ask lets somebody ask, and ask again under the same key until there is an
// answer: the server may be down, or die over it.
func (w *world) ask(n int, a askPlan) {
	body := client.AskBody{Kind: client.AskBodyKind(a.Kind)}
	for _, i := range a.VMs {
		body.Vms = append(body.Vms, w.vm(i))
	}
	if a.NoDrain {
		body.NoDrain = &a.NoDrain
	}
	if a.Replace {
		body.Recreate = &a.Replace
	}
	if parallel := int64(a.Parallel); parallel > 0 {
		body.Parallel = &parallel
	}
	if a.Policy != nil {
		body.Policy = a.Policy.patch()
	}
	key := fmt.Sprintf("ask-%d-%d", w.plan.Seed, n)
	for deadline := time.Now().Add(patience); ; {
		asked, err := w.client.Ask(w.life, fleetName, key, body)
		switch {
		case err == nil:
			for _, op := range asked.Operations {
				w.say("ada     asks for %s of %s: %s", a.Kind, op.Vm, op.Id)
			}
			return
		case fleet.CodeOf(err) != fleet.CodeUnavailable:
			w.say("ada     asks for %s of %v: %s", a.Kind, body.Vms, err)
			return
		case time.Now().After(deadline):
			w.violation("ends", "nobody answers %s of %v: %s", a.Kind, body.Vms, err)
			return
		}
		if !w.pause(100 * time.Millisecond) {
			return
		}
	}
}

func (p policyPlan) patch() *client.PolicyPatch {
	limit, hard, reach := p.Cap.String(), p.HardCap.String(), p.Reach.String()
	overrun, unreachable := client.PolicyPatchOnOverrun(p.OnOverrun), client.PolicyPatchUnreachable(p.Unreachable)
	return &client.PolicyPatch{Cap: &limit, HardCap: &hard, ReachDeadline: &reach, OnOverrun: &overrun, Unreachable: &unreachable}
}

// acts are everything that can go wrong.
var acts = map[string]func(*world, act){
	"kill sluice":         func(w *world, a act) { w.server.replaced(a.For) },
	"stop sluice":         func(w *world, a act) { w.server.restarted(a.For) },
	"cancel":              cancel,
	"gitlab down":         func(w *world, a act) { w.gitlab(a, simgitlab.Fault{Kind: simgitlab.FaultStatus, Code: 502}) },
	"gitlab drops":        func(w *world, a act) { w.gitlab(a, simgitlab.Fault{Kind: simgitlab.FaultDrop}) },
	"gitlab slow results": func(w *world, a act) { w.SlowResults(a.For) },
	"cloud down": func(w *world, a act) {
		w.Cloud().Blind(true)
		w.pause(a.For)
		w.Cloud().Blind(false)
	},
	"lose cloud answers": func(w *world, a act) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lose += a.Times
	},
	"fail create": func(w *world, a act) {
		codes := []fleet.Code{fleet.CodeStockout, fleet.CodeUnavailable, fleet.CodeQuota}
		w.Cloud().FailCreates(codes[:a.Times]...)
	},
	"kill sshd": onHost(func(w *world, h *simhost.Host, a act) {
		h.Unreachable()
		w.outOfReach(a)
		h.Reachable()
	}),
	"hang": onHost(func(w *world, h *simhost.Host, a act) {
		h.Hang()
		w.outOfReach(a)
		h.Thaw()
	}),
	"cut ssh answer": onHost(func(w *world, h *simhost.Host, a act) { h.CutAfter(40 * a.Times); w.outOfReach(a) }),
	"empty answers":  onHost(func(_ *world, h *simhost.Host, a act) { h.EmptyAnswers(a.Times) }),
	"kill runner": onHost(func(w *world, h *simhost.Host, _ act) {
		if m := h.Systemd(); m != nil {
			w.hurts(h, func() { m.Kill(w.Spec().Host.Unit, syscall.SIGKILL, false) })
		}
	}),
	"power cut": onHost(func(w *world, h *simhost.Host, a act) {
		w.mu.Lock()
		w.powered[w.vm(a.VM)] = true
		w.mu.Unlock()
		w.hurts(h, h.Crash)
	}),
}

func (w *world) perform(a act) {
	do := acts[a.Do]
	if do == nil {
		w.violation("plan", "nobody knows how to do %q", a.Do)
		return
	}
	w.say("--      %s %s %s", a.Do, w.vm(a.VM), a.For)
	do(w, a)
}

// gitlab breaks every call to GitLab for a while, the runners' too.
func (w *world) gitlab(a act, f simgitlab.Fault) {
	f.For = a.For
	w.GitLab().Inject(f)
	w.pause(a.For)
}

// onHost does something to the VM's host, if there is one.
func onHost(do func(*world, *simhost.Host, act)) func(*world, act) {
	return func(w *world, a act) {
		if h := w.Host(w.vm(a.VM)); h != nil {
			do(w, h, a)
		}
	}
}

// hurts notes that what runs on a host ends now, and not by Sluice.
func (w *world) hurts(h *simhost.Host, how func()) {
	from := time.Now()
	how()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hurt[h.SystemID()] = append(w.hurt[h.SystemID()], span{from, time.Now()})
}

// outOfReach lets a fault of the way to a host last, and notes its beginning and
// its end.
func (w *world) outOfReach(a act) {
	note := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.away[w.vm(a.VM)] = append(w.away[w.vm(a.VM)], time.Now())
	}
	note()
	w.pause(a.For)
	note()
}

// cancel cancels what runs on a VM, if somebody is there to hear it.
func cancel(w *world, a act) {
	vm, unfinished := w.vm(a.VM), true
	list, err := w.client.Operations(w.life, client.ListOperationsParams{Vm: &vm, Unfinished: &unfinished})
	if err != nil || len(list.Operations) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(w.life, 20*time.Second)
	defer stop()
	_, err = w.client.Cancel(ctx, list.Operations[0].Id)
	w.say("ada     cancels %s: %v", list.Operations[0].Id, err)
}
