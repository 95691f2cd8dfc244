package worlds

import (
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// waitingAct is an act that waits for a point to be passed.
type waitingAct struct {
	act  Act
	left int
}

// schedule puts the plan's jobs, intents and acts on the clock.
func (w *World) schedule() {
	end := time.Duration(0)
	for i, p := range w.plan.Jobs {
		j := &job{id: int64(100 + i), length: p.Length}
		w.after(p.At, func() {
			w.jobs = append(w.jobs, j)
			w.pending = append(w.pending, j)
			w.offer()
		})
		end = max(end, p.At)
	}
	for _, a := range w.plan.Asks {
		w.after(a.At, func() { w.ask(a) })
		end = max(end, a.At)
	}
	for _, a := range slices.Concat(w.plan.Acts, w.plan.Changes) {
		if a.Point != "" {
			w.waiting[a.Point] = append(w.waiting[a.Point], waitingAct{a, a.Nth})
			continue
		}
		w.after(a.At, func() { w.perform(a) })
		end = max(end, a.At+a.For)
	}
	w.inputsEnd = end + time.Second
}

// point is passed at each call's request, effect and answer and around each
// commit. vm -1 = of no VM.
func (w *World) point(name string, vm int) {
	list := w.waiting[name]
	for i := range list {
		if list[i].left <= 0 || vm >= 0 && list[i].act.VM != vm {
			continue
		}
		if list[i].left--; list[i].left == 0 {
			w.perform(list[i].act)
		}
	}
}

// perform lets one act happen. What it hits may not be there: then nothing
// does.
func (w *World) perform(a Act) {
	if len(w.plan.VMs) == 0 || a.VM >= len(w.plan.VMs) {
		return
	}
	if do := acts[a.Do]; do != nil {
		w.say("--       %s%s", a.Do, a.detail())
		w.rested = 0
		if !harmless[a.Do] {
			w.hindered = max(w.hindered, w.now+a.For+hindrance)
		}
		do(w, a)
		w.inputsEnd = max(w.inputsEnd, w.now+a.For)
		return
	}
	w.violation("plan", "nobody knows how to do %q", a.Do)
}

func (a Act) detail() string {
	text := " " + vmName(a.VM)
	if a.For > 0 {
		text += " for " + a.For.String()
	}
	if a.Kind != "" {
		text += " " + a.Kind
	}
	if a.Point != "" {
		text += " (at " + a.Point + ")"
	}
	return text
}

// acts are everything that can happen to a world from outside.
var acts map[string]func(*World, Act)

func init() { //nolint:gochecknoinits // the acts refer to the world, which refers to them
	acts = map[string]func(*World, Act){
		"kill":            func(w *World, a Act) { w.boot(a.For); w.kill("an act") },
		"shut down":       func(w *World, a Act) { w.shutDown(); w.boot(a.For + 3*time.Second) },
		"pause":           func(w *World, a Act) { w.pausedUntil = w.now + a.For },
		"lose wakes":      func(w *World, a Act) { w.controller.deafUntil = w.now + a.For },
		"cancel":          func(w *World, a Act) { w.cancel(a.VM) },
		"extend":          func(w *World, a Act) { w.extend(a) },
		"skip drain":      func(w *World, a Act) { w.change(a, control.Change{Skip: true}) },
		"set policy":      func(w *World, a Act) { w.setPolicy(a) },
		"resume":          func(w *World, a Act) { w.resumeHeld(a.VM) },
		"undrain":         func(w *World, a Act) { w.ask(AskPlan{Kind: "undrain", VMs: []int{a.VM}}) },
		"job at stop":     jobAtStop,
		"gitlab down":     func(w *World, a Act) { w.gitlab.downUntil = w.now + a.For; w.after(a.For+time.Second, w.offer) },
		"gitlab 429":      func(w *World, a Act) { w.gitlab.limitedUntil = w.now + a.For },
		"gitlab stale":    func(w *World, a Act) { w.gitlab.staleUntil, w.gitlab.lag = w.now+a.For, 8*time.Second },
		"gitlab short":    func(w *World, a Act) { w.gitlab.shortUntil = w.now + a.For },
		"gitlab mute":     func(w *World, a Act) { w.gitlab.oldUntil = w.now + a.For },
		"hide manager":    func(w *World, a Act) { hideManager(w, a) },
		"lose posts":      func(w *World, a Act) { w.gitlab.losePosts = a.Times },
		"late post":       func(w *World, a Act) { w.gitlab.latePost = a.For },
		"cancel job":      personCancelsJob,
		"retry job":       personRetriesJob,
		"cancel pipeline": personCancelsPipeline,

		"cloud down":   func(w *World, a Act) { w.cloud.downUntil = w.now + a.For },
		"cloud blind":  func(w *World, a Act) { w.cloud.vms[a.VM].blindUntil = w.now + a.For },
		"fail create":  func(w *World, a Act) { fill(&w.cloud.vms[a.VM].refusals, a) },
		"fail delete":  func(w *World, a Act) { fill(&w.cloud.vms[a.VM].deleteErrs, a) },
		"lose create":  func(w *World, a Act) { w.cloud.vms[a.VM].loseCreate = a.Times },
		"lose delete":  func(w *World, a Act) { w.cloud.vms[a.VM].loseDelete = a.Times },
		"late create":  func(w *World, a Act) { w.cloud.vms[a.VM].lateCreate = a.For },
		"late delete":  func(w *World, a Act) { w.cloud.vms[a.VM].lateDelete = a.For },
		"linger disk":  func(w *World, a Act) { w.cloud.vms[a.VM].linger = a.For },
		"bad image":    func(w *World, a Act) { w.cloud.vms[a.VM].badImage = true },
		"lose orders":  func(w *World, a Act) { w.hosts[a.VM].loseAnswers = a.Times },
		"late order":   func(w *World, a Act) { w.hosts[a.VM].late = a.For },
		"no sudo":      func(w *World, a Act) { w.hosts[a.VM].sudoUntil = w.now + a.For },
		"unreachable":  onMachine(func(w *World, m *machine, a Act) { m.lostUntil = w.now + a.For }),
		"hang":         onMachine(func(w *World, m *machine, a Act) { m.hungUntil = w.now + a.For; w.after(a.For+time.Second, w.offer) }),
		"empty answer": onMachine(func(w *World, m *machine, a Act) { m.muteUntil = w.now + a.For }),
		"reboot":       onMachine(reboot),
		"power off":    onMachine(powerOff),
		"power on":     onMachine(powerOn),
		"start unit":   onMachine(personStarts),
		"stop unit":    onMachine(personStops),
		"term runner":  onMachine(personTerms),
		"kill runner":  onMachine(personKills),
		"delete vm":    onMachine(personDeletes),
		"replace vm":   onMachine(personReplaces),
		"rename entry": onMachine(renameEntry),
	}
}

func onMachine(do func(*World, *machine, Act)) func(*World, Act) {
	return func(w *World, a Act) {
		if m := w.present(a.VM); m != nil {
			do(w, m, a)
		}
	}
}

func fill(list *[]fleet.Code, a Act) {
	for range max(a.Times, 1) {
		*list = append(*list, fleet.Code(a.Kind))
	}
}

// jobAtStop has a job assigned whose answer will be too late for a runner that
// is told to stop about now.
func jobAtStop(w *World, a Act) {
	m := w.present(a.VM)
	if m == nil || !m.asks(w) || !w.gitlab.answers(w) {
		return
	}
	j := &job{id: int64(900 + len(w.jobs)), length: 30 * time.Second}
	w.jobs = append(w.jobs, j)
	w.assign(j, m, 3*time.Second)
}

func hideManager(w *World, a Act) {
	m := w.present(a.VM)
	if m == nil {
		return
	}
	if r := w.gitlab.managers[m.key()]; r != nil {
		r.hiddenUntil = w.now + a.For
	}
}

func reboot(w *World, m *machine, a Act) {
	if m.off || m.boots == 0 {
		return
	}
	w.guestDown(m, "a reboot")
	w.after(max(a.For, 15*time.Second), func() {
		if !m.gone && !m.deleting && !m.off && m.down {
			w.guestUp(m, m.trait != UnitDown)
		}
	})
}

func powerOff(w *World, m *machine, a Act) {
	if m.boots == 0 {
		return
	}
	w.guestDown(m, "a power cut")
	m.off = true
	if a.For > 0 {
		w.after(a.For, func() { powerOn(w, m, a) })
	}
}

func powerOn(w *World, m *machine, _ Act) {
	if m.off && !m.gone && !m.deleting {
		m.off = false
		w.after(15*time.Second, func() {
			if !m.gone && !m.deleting && !m.off {
				w.guestUp(m, m.trait != UnitDown)
			}
		})
	}
}

func personStarts(w *World, m *machine, _ Act) {
	if m.guest() {
		w.startUnit(m, "a person")
	}
}

// personStops is systemctl stop: graceful under our drop-in, else SIGTERM.
func personStops(w *World, m *machine, _ Act) {
	if !m.guest() || m.unit.MainPID == 0 || m.unit.ActiveState == "deactivating" {
		return
	}
	m.personOff, m.wasOff = true, true
	if m.dropIn.Effective {
		w.sigquit(m, "a person")
		return
	}
	w.endJobs(m, "a person's stop", true)
	w.processGone(m, "inactive", "success")
}

// personTerms is kill -TERM to the process, whatever the unit is doing.
func personTerms(w *World, m *machine, _ Act) {
	if !m.guest() || m.unit.MainPID == 0 {
		return
	}
	w.endJobs(m, "a person's kill", true)
	w.diesAlone(m, "success")
}

// personKills is kill -9.
func personKills(w *World, m *machine, _ Act) {
	if !m.guest() || m.unit.MainPID == 0 {
		return
	}
	w.endJobs(m, "a person's kill -9", false)
	m.leftover = true
	w.diesAlone(m, "signal")
}

// diesAlone is the end of a process that the unit did not ask for.
func (w *World) diesAlone(m *machine, result string) {
	switch {
	case m.unit.ActiveState == "deactivating" && result == "success":
		w.processGone(m, "inactive", result)
	case m.dropIn.Effective || m.unit.ActiveState == "deactivating":
		m.personOff = !m.dropIn.Effective
		w.processGone(m, "failed", result)
	default:
		w.processGone(m, "activating", result)
	}
}

func personDeletes(w *World, m *machine, _ Act) {
	w.ledger.byHand[m.vm] = w.now
	w.remove(m, "a person's delete")
}

// personReplaces deletes the VM by hand and makes another of its name.
func personReplaces(w *World, m *machine, _ Act) {
	w.ledger.byHand[m.vm] = w.now
	w.remove(m, "a person's delete")
	w.after(25*time.Second, func() {
		if len(w.living(m.vm)) > 0 {
			return
		}
		n := w.birth(m.vm, "")
		w.say("--       %s is made by hand", n)
		w.after(20*time.Second, func() {
			if !n.gone && !n.deleting {
				w.guestUp(n, true)
			}
		})
	})
}
