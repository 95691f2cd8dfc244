package worlds

import (
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// machine is one incarnation of a VM.
type machine struct {
	vm        int
	name      string
	id        string
	boot      string
	systemID  string
	label     string // the operation that made it; "" = by hand
	entry     *entry // its own runner entry; nil = it has none
	removedBy string
	trait     Trait
	bad       bool // its image never joins

	born     time.Duration
	upAt     time.Duration // its guest answers from here on
	off      bool
	down     bool // between two boots
	deleting bool
	gone     bool
	goneSeen time.Duration // when it went
	diskLeft time.Duration // until when its disk is left behind

	hungUntil, lostUntil, muteUntil time.Duration

	unit        fleet.UnitState
	dropIn      fleet.DropIn
	number      int64 // of the highest order obeyed
	quit        bool
	startQueued bool
	queuedBy    string
	startedBy   string
	pidSince    time.Duration
	goneAt      time.Duration // when the last process went
	pids        int
	boots       int
	concurrent  int
	jobs        []*job
	coming      []*job // assigned, not arrived
	waiters     []*proc
	leftover    bool

	// What the ledger keeps of it.
	stops     map[string]time.Duration // when each operation's stop first took effect
	heard     time.Duration            // when the engine last had an answer from it
	silence   time.Duration            // the longest time without one, since an operation began
	personOff bool                     // a person, or a fault, has stopped its unit last
	wasOff    bool                     // a person had stopped its unit at some time
	touched   bool                     // a person has changed its drop-in
}

func (m *machine) String() string { return m.name + "/" + m.id }

// guest says whether its operating system runs.
func (m *machine) guest() bool { return !m.gone && !m.deleting && !m.off && !m.down && m.boots > 0 }

// settle makes a member as the plan has it in the beginning.
func (w *World) settle(i int) {
	plan := w.plan.VMs[i]
	if plan.Trait == Missing {
		return
	}
	m := w.birth(i, "")
	m.trait = plan.Trait
	switch plan.Trait {
	case Off:
		m.off = true
	case Never:
		m.systemID = ""
		w.guestUp(m, false)
	case UnitDown:
		w.guestUp(m, false)
		m.personOff = true
		w.contact(m)
	case Foreign:
		w.guestUp(m, false)
		m.personOff = true
		m.dropIn = fleet.DropIn{Present: true, Effective: true, Owner: "other", Operation: "op-other", Number: 5}
		m.number = 5
		w.contact(m)
	default:
		m.leftover = plan.Trait == Leftover
		w.guestUp(m, true)
	}
}

// birth makes a machine that is powered on and has not booted yet.
func (w *World) birth(i int, label string) *machine {
	id := fmt.Sprintf("i-%02d", len(w.machines)+1)
	m := &machine{
		vm: i, name: vmName(i), id: id, label: label, systemID: "s_" + id, born: w.now,
		concurrent: max(w.plan.VMs[i].Concurrent, 1), stops: map[string]time.Duration{}, heard: w.now,
		unit: fleet.UnitState{ActiveState: "inactive", SubState: "dead", Result: "success"},
	}
	if w.plan.VMs[i].Trait == KeepsID && label != "" {
		m.systemID = "s_kept_" + m.name
	}
	if w.plan.VMs[i].Trait == KeepsID && len(w.living(i)) == 0 {
		m.systemID = "s_kept_" + m.name
	}
	w.machines = append(w.machines, m)
	if w.plan.VMs[i].Trait != Never || label != "" {
		w.register(m)
	}
	return m
}

// guestUp boots the guest: /run is empty, and the runner starts unless it is
// disabled.
func (w *World) guestUp(m *machine, runner bool) {
	m.boots++
	m.boot = fmt.Sprintf("%s-b%d", m.id, m.boots)
	m.upAt, m.dropIn, m.number = w.now, fleet.DropIn{}, 0
	m.off, m.down, m.startQueued, m.touched = false, false, false, false
	m.unit = fleet.UnitState{ActiveState: "inactive", SubState: "dead", Result: "success"}
	if runner && !m.bad && m.trait != Never {
		m.personOff = false
		w.processUp(m, "boot")
		return
	}
	m.personOff, m.wasOff = true, true // it is not enabled
}

// guestDown ends whatever runs on it, at once.
func (w *World) guestDown(m *machine, by string) {
	w.endJobs(m, by, false)
	if m.unit.MainPID != 0 {
		m.startQueued = false
		w.processGone(m, "inactive", "success")
	}
	m.down = true
}

// living lists the incarnations of a VM that exist, oldest first.
func (w *World) living(i int) []*machine {
	var list []*machine
	for _, m := range w.machines {
		if m.vm == i && !m.gone {
			list = append(list, m)
		}
	}
	return list
}

// present is the VM's incarnation that works; nil if there is none.
func (w *World) present(i int) *machine {
	for _, m := range w.machines {
		if m.vm == i && !m.gone && !m.deleting {
			return m
		}
	}
	return nil
}

func (w *World) byID(id string) *machine {
	for _, m := range w.machines {
		if m.id == id {
			return m
		}
	}
	return nil
}
