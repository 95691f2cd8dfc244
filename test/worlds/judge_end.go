package worlds

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// What is judged when everything has come to rest.

// restChecks is for how many looks in a row a world must be at rest to end.
const restChecks = 12

// atRest says whether nothing is left to do, for a while now.
func (w *World) atRest() bool {
	chores, _ := w.store.UnfinishedChores(context.Background())
	if w.now < w.inputsEnd || len(chores) > 0 || !w.onlyStuck() {
		w.rested = 0
		return false
	}
	w.rested++
	return w.rested > restChecks
}

// onlyStuck says whether what is unfinished waits for a budget that no
// operation will free. What is held, somebody resumes.
func (w *World) onlyStuck() bool {
	ops, _ := w.store.Unfinished(context.Background())
	for i := range ops {
		if ops[i].Held {
			w.resumeHeld(w.vmIndex(ops[i].VM))
		}
		if ops[i].Phase != fleet.PhaseQueued || !w.mayWait(&ops[i]) {
			return false
		}
	}
	return true
}

// judgeTheEnd looks at what is left.
func (w *World) judgeTheEnd() {
	w.judgeEnded()
	for i := range w.plan.VMs {
		w.judgeVM(i)
	}
	w.judgeAccounts()
	w.judgeEntries()
}

// judgeEnded wants every operation ended, or saying what it waits for, where
// something is the matter that it may well wait for.
func (w *World) judgeEnded() {
	ops, _ := w.store.Unfinished(context.Background())
	for i := range ops {
		switch op := &ops[i]; {
		case op.Waiting == "":
			w.violation("ends", "%s (%s) is %s and does not say what it waits for", op.ID, op.VM, op.Phase)
		case !w.mayWait(op):
			w.violation("ends", "%s (%s) is %s: %s; nothing is the matter", op.ID, op.VM, op.Phase, op.Waiting)
		}
	}
	chores, _ := w.store.UnfinishedChores(context.Background())
	for i := range chores {
		c := &chores[i]
		m := w.present(w.vmIndex(c.VM))
		if w.operationOn(w.vmIndex(c.VM)) == "" && (m == nil || m.guest()) {
			w.violation("nothing left", "chore %s of %s has not ended: %s", c.ID, c.VM, c.State)
		}
	}
}

// mayWait says whether an operation has a reason to wait for ever.
func (w *World) mayWait(op *fleet.Operation) bool {
	m := w.present(w.vmIndex(op.VM))
	switch {
	case op.Held:
		return true
	case op.Phase == fleet.PhaseQueued:
		return strings.Contains(op.Waiting, "not serving") || strings.Contains(op.Waiting, "goes first")
	case m == nil:
		return op.Phase == fleet.PhaseCreating
	default:
		return !m.guest() || m.bad || m.trait == Never || op.Phase == fleet.PhaseCreating && m.label == ""
	}
}

func (w *World) unfinished() string {
	ops, _ := w.store.Unfinished(context.Background())
	var list []string
	for i := range ops {
		list = append(list, fmt.Sprintf("%s is %s: %s", ops[i].ID, ops[i].Phase, ops[i].Waiting))
	}
	return strings.Join(list, "; ")
}

// wanted is how a VM must be in the end, by what was asked and how it ended.
type wanted struct {
	exists, drained, unsure bool
}

func (w *World) wanted(i int) wanted {
	want := wanted{exists: w.plan.VMs[i].Trait != Missing}
	for _, op := range w.endedOn(i) {
		switch ok := op.Phase == fleet.PhaseSucceeded; {
		case ok && op.Kind.Creates(), op.Phase == fleet.PhaseFailed && op.Create.New.Instance != "":
			want = wanted{exists: true}
		case ok && op.Kind == fleet.KindDelete:
			want = wanted{}
		case ok && op.Kind == fleet.KindDrain:
			want.drained = true
		case ok && op.Kind == fleet.KindUndrain:
			want = wanted{exists: true} // it found one, which may have come late
		}
	}
	if _, hand := w.ledger.byHand[i]; hand || w.operationOn(i) != "" {
		want.unsure = true
	}
	return want
}

// endedOn lists a VM's operations in the order of their ends.
func (w *World) endedOn(i int) []fleet.Operation {
	var list []fleet.Operation
	for _, id := range w.ledger.asked {
		op, err := w.store.Operation(context.Background(), id)
		if err != nil || op.VM != vmName(i) || !op.Phase.Finished() {
			continue
		}
		at := len(list)
		for at > 0 && list[at-1].FinishedAt.After(op.FinishedAt) {
			at--
		}
		list = append(list[:at], append([]fleet.Operation{*op}, list[at:]...)...)
	}
	return list
}

// judgeVM judges what is left of a VM's name.
func (w *World) judgeVM(i int) {
	want, there := w.wanted(i), w.living(i)
	switch {
	case len(there) > 1:
		w.judgeTwins(i, there)
	case want.unsure:
	case want.exists && len(there) == 0:
		w.violation("one of each", "%s is gone for good, and nobody asked for that", vmName(i))
	case !want.exists && len(there) == 1 && !w.ledger.overlookedSince(i, there[0].born): // else it was overlooked by whoever could know
		w.violation("one of each", "%s is there in the end, and was to be gone", there[0])
	}
	for _, m := range w.machines {
		if m.vm == i && m.gone && w.now < m.diskLeft {
			w.violation("nothing left", "the disk of %s is left", m)
		}
	}
	if len(there) == 1 && !want.unsure {
		w.judgeIntake(there[0], want)
	}
}

// judgeTwins finds against two incarnations of one name, unless the provider has
// denied them, or one of them is a person's: nobody may delete that.
func (w *World) judgeTwins(i int, there []*machine) {
	var ours []*machine
	for _, m := range there {
		if !m.byHand() {
			ours = append(ours, m)
		}
	}
	if len(ours) > 1 && !w.ledger.overlookedSince(i, ours[0].born) {
		w.violation("one of each", "%s and %s are there in the end", ours[0], ours[1])
	}
}

func (w *World) judgeIntake(m *machine, want wanted) {
	if !m.guest() || m.bad || m.trait == Never || w.now < max(m.hungUntil, m.lostUntil, m.muteUntil) {
		return
	}
	mine := m.dropIn.Present && m.dropIn.Owner == owner
	switch {
	case m.dropIn.Present && !mine, w.ledger.overlookedSince(m.vm, m.born):
	case want.drained && m.unit.MainPID != 0 && !m.quit:
		w.violation("drained", "%s is to stay drained, and its runner runs", m)
	case want.drained:
	case mine:
		w.violation("nothing left", "the drop-in of %s is left on %s", m.dropIn.Operation, m)
	case m.wasOff && m.startedBy == "a person": // perhaps after preflight had found it down
	case m.unit.ActiveState != "active" && !m.personOff:
		w.violation("serves", "%s is left with its unit %s", m, m.unit.ActiveState)
	}
}

var namesJob = regexp.MustCompile(`job (\d+)`)

// accounts are what the events say of jobs.
type accounts struct {
	told   map[int64][]fleet.Fact // as cut or orphaned
	warned map[int64]bool
	blind  map[string]bool // operations that could not tell
}

func (w *World) accounts() accounts {
	a := accounts{told: map[int64][]fleet.Fact{}, warned: map[int64]bool{}, blind: map[string]bool{}}
	for _, f := range w.store.Facts {
		a.blind[f.Operation] = a.blind[f.Operation] || strings.Contains(f.Text, "cannot be told")
		all := -1
		if f.Kind != fleet.FactWarning {
			all = 1 // what runs in its place is no other's loss
		}
		for _, match := range namesJob.FindAllStringSubmatch(f.Text, all) {
			id, _ := strconv.ParseInt(match[1], 10, 64)
			switch {
			case f.Kind == fleet.FactCut, f.Kind == fleet.FactOrphan:
				a.told[id] = append(a.told[id], f)
			case f.Kind == fleet.FactWarning:
				a.warned[id] = true
			case strings.HasSuffix(f.Text, "was not cut after all"):
				a.takeBack(id)
			}
		}
	}
	return a
}

// takeBack forgets the last time that a job was told of as cut.
func (a accounts) takeBack(job int64) {
	for i, f := range slices.Backward(a.told[job]) {
		if f.Kind == fleet.FactCut {
			a.told[job] = slices.Delete(a.told[job], i, i+1)
			return
		}
	}
}

// judgeAccounts wants every job that we cut or orphaned told of in the events,
// and no other.
func (w *World) judgeAccounts() {
	a := w.accounts()
	for _, j := range w.jobs {
		for _, fact := range a.told[j.id] {
			if j.cutBy == "" && j.orphanBy == "" && !j.gaveUp && !w.excused(j, fact) {
				w.violation("accounts", "job %d ended well, and an event says: %s", j.id, fact.Text)
			}
		}
		switch {
		case j.after.canceledBy == "a person": // who knows of it
		case len(a.told[j.id]) > 0, a.warned[j.id], !w.spec.HasGitLab, a.blind[withoutStray(strings.TrimPrefix(j.cutBy, "us:"))]:
		case strings.HasPrefix(j.cutBy, "us:"):
			w.violation("accounts", "job %d was cut by %s, and no event says so", j.id, j.cutBy)
		case strings.HasPrefix(j.orphanBy, "op-"):
			w.violation("accounts", "job %d was orphaned by the stop of %s, and no event says so", j.id, j.orphanBy)
		}
	}
}

// withoutStray is the operation that a stray's own is a part of: its events
// bear that one's id.
func withoutStray(op string) string {
	id, _, _ := strings.Cut(op, "-i-")
	return id
}

// excused says whether an event may be wrong about a job: it was recorded as
// about to be cut, and ended by itself at about that time; or the provider
// had overlooked its VM.
func (w *World) excused(j *job, f fleet.Fact) bool {
	ahead := strings.Contains(f.Text, "may have run") || strings.Contains(f.Text, "the cap passed") || strings.Contains(f.Text, "the drain was skipped")
	return ahead && j.shownEnd > since(f.At)-10*time.Second || w.ledger.overlookedSince(w.vmIndex(f.VM), 0)
}
