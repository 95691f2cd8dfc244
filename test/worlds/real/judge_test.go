package real

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simcloud"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// What is judged of VMs and operations; of jobs, see jobs_test.go.

// slack is how far the world's clock readings may be off: it looks at hosts
// now and then, and on a busy machine less often than it wants to.
const slack = 150 * time.Millisecond

// judgeDelete judges a delete in the moment that the cloud hears of it: without
// a waiver the runner of the VM must be gone.
func (w *world) judgeDelete(o engine.DeleteOrder) {
	journal, h := w.journal(), w.HostOf(o.Instance)
	if journal == nil || h == nil || !h.Up() || w.lately(h) {
		return
	}
	op, err := journal.Operation(w.life, o.Operation)
	if err != nil || w.waived(op, o.Instance, time.Now()) {
		return // a delete for an operation that does not exist is judged by the cloud's journal
	}
	if active, pid := w.unit(h); pid != "0" {
		w.violation("proof", "%s deletes %s while its runner runs (process %s, %s)", o.Operation, o.Instance, pid, active)
	}
}

// lately says whether a fault started a runner so shortly ago that no proof
// could know.
func (w *world) lately(h *simhost.Host) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.hurt[h.SystemID()] {
		if time.Since(at.to) < fleet.ProofAge+5*time.Second {
			return true
		}
	}
	return false
}

// waived says whether somebody's policy lets an operation end an instance
// without a proof at a moment, by what the world itself has seen: its own clock
// since the operation's stop took effect, its own faults.
func (w *world) waived(op *fleet.Operation, instance string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	policy := op.Request.Policy
	if op.Request.NoDrain {
		return true
	}
	if policy.Unreachable == fleet.UnreachableProceed {
		if w.pace.lateSince(op.CreatedAt) {
			return true // nobody may have had the time to answer
		}
		for _, back := range w.away[op.VM] {
			if back.After(op.CreatedAt) {
				return true
			}
		}
	}
	limit := policy.Cap
	if policy.OnOverrun == fleet.OverrunWait {
		limit = max(policy.HardCap, policy.Cap)
	}
	stop, stopped := w.stops[stopKey{instance, op.ID}]
	return stopped && policy.OnOverrun != fleet.OverrunAbort && !at.Before(stop.Add(limit-slack))
}

// judgeTheEnd looks at what is left once the server has been told to stop.
func (w *world) judgeTheEnd() {
	if w.journal() == nil {
		w.violation("ends", "there is no journal")
		return
	}
	w.judgeEnded()
	w.judgeChores()
	w.judgeCloud()
	for _, vm := range w.Spec().VMs {
		w.judgeVM(vm)
	}
	w.judgeProcesses()
	for _, d := range w.GitLab().Ledger().Damage {
		w.violation("token", "%s: %s", d.Route, d.Effect)
	}
	w.judgeJobs()
}

// judgeEnded wants every operation ended, or saying what it waits for, where
// something is the matter that it may well wait for.
func (w *world) judgeEnded() {
	for _, op := range w.operations() {
		switch {
		case op.Phase.Finished():
		case op.Waiting == "":
			w.violation("ends", "%s (%s) is %s and does not say what it waits for", op.ID, op.VM, op.Phase)
		case !w.mayWait(&op):
			w.violation("ends", "%s (%s) is %s: %s; nothing is the matter", op.ID, op.VM, op.Phase, op.Waiting)
		}
	}
}

// judgeChores wants every chore ended, or with a moment at which it goes on. A
// watch for orphans takes a minute at least, and what follows it longer: no
// world waits for them.
func (w *world) judgeChores() {
	chores, err := w.sees.UnfinishedChores(w.life)
	if err != nil {
		w.violation("ends", "%s", err)
		return
	}
	for _, c := range chores {
		if late := time.Since(c.NextAt); late > 10*time.Second {
			w.violation("ends", "chore %s of %s was to be looked at %s ago, and nobody did", c.ID, c.VM, late.Round(time.Second))
		}
		w.pending++
	}
}

// judgeCloud goes through the cloud's own journal: exactly one VM of each name
// at any time, and nothing deleted but what an operation was asked to delete.
func (w *world) judgeCloud() {
	born := map[string]time.Time{}
	there := map[string]string{} // name → instance
	for _, e := range w.Cloud().Journal() {
		if e.Step != "effect" {
			continue
		}
		switch e.Act {
		case "create", "appear":
			if other := there[e.VM]; other != "" {
				w.violation("one of each", "%s is made while %s is there", e.Instance, other)
			}
			there[e.VM], born[e.Instance] = e.Instance, e.At
		default:
			if there[e.VM] == e.Instance {
				delete(there, e.VM)
			}
			w.judgeDeleted(e, born[e.Instance])
		}
	}
	known := map[string]bool{}
	for _, in := range w.Cloud().Instances() {
		known["disk-"+in.ID] = true
	}
	for _, disk := range w.Cloud().Disks() {
		if !known[disk] {
			w.violation("nothing left", "%s is left", disk)
		}
	}
}

func (w *world) judgeDeleted(e simcloud.Entry, born time.Time) {
	op, err := w.sees.Operation(w.life, e.Operation)
	switch {
	case err != nil:
		w.violation("identity", "%s (%s) is deleted for %q: %s", e.Instance, e.VM, e.Operation, err)
	case op.VM != e.VM || !op.Kind.Deletes():
		w.violation("identity", "%s (%s) is deleted for %s, a %s of %s", e.Instance, e.VM, op.ID, op.Kind, op.VM)
	case op.Old.Instance != e.Instance:
		w.violation("identity", "%s (%s) is deleted for %s, which was to delete %s", e.Instance, e.VM, op.ID, op.Old.Instance)
	case born.After(e.At), !op.Delete.IntentAt.Before(e.At):
		w.violation("identity", "%s (%s) was deleted before %s had committed that", e.Instance, e.VM, op.ID)
	}
}

// wanted is how a VM must be in the end, by what was asked and how it ended.
type wanted struct{ exists, drained bool }

func (w *world) wanted(vm string) (want wanted, sure bool) {
	want = wanted{exists: true}
	ops := w.operations()
	var last time.Time
	for done := false; !done; {
		done = true
		var next *fleet.Operation
		for i := range ops { // in the order of their ends
			op := &ops[i]
			if op.VM == vm && op.Phase.Finished() && op.FinishedAt.After(last) && (next == nil || op.FinishedAt.Before(next.FinishedAt)) {
				next, done = op, false
			}
		}
		if next != nil {
			last = next.FinishedAt
			want = want.after(next)
		}
	}
	for i := range ops {
		if ops[i].VM == vm && !ops[i].Phase.Finished() {
			return want, false
		}
	}
	return want, true
}

func (want wanted) after(op *fleet.Operation) wanted {
	switch ok := op.Phase == fleet.PhaseSucceeded; {
	case ok && op.Kind.Creates(), op.Phase == fleet.PhaseFailed && op.Create.New.Instance != "":
		return wanted{exists: true}
	case ok && op.Kind == fleet.KindDelete:
		return wanted{}
	case ok && op.Kind == fleet.KindDrain:
		want.drained = true
	case ok && op.Kind == fleet.KindUndrain:
		want.drained = false
	}
	return want
}

// judgeVM judges what is left of a VM's name.
func (w *world) judgeVM(vm string) {
	want, sure := w.wanted(vm)
	there := 0
	for _, in := range w.Cloud().Instances() {
		if in.VM == vm {
			there++
		}
	}
	switch {
	case there > 1:
		w.violation("one of each", "%d instances carry the name of %s in the end", there, vm)
	case !sure:
	case want.exists && there == 0:
		w.violation("one of each", "%s is gone for good, and nobody asked for that", vm)
	case !want.exists && there == 1:
		w.violation("one of each", "%s is there in the end, and was to be gone", vm)
	case there == 1:
		w.judgeIntake(vm, want)
	}
}

func (w *world) judgeIntake(vm string, want wanted) {
	h := w.Host(vm)
	if h == nil || !h.Up() {
		w.violation("serves", "%s is not up in the end", vm)
		return
	}
	active, pid := w.unit(h)
	switch by := drainedBy(h); {
	case want.drained && w.powered[vm]: // the sweep drains it again, within a minute
	case want.drained && pid != "0":
		w.violation("drained", "%s is to stay drained, and its runner runs", vm)
	case want.drained:
	case by != "":
		w.violation("nothing left", "the drop-in of %s is left on %s", by, vm)
	case active != "active":
		w.violation("serves", "%s is left with its unit %s", vm, active)
	}
}

// judgeProcesses wants no command of the exec provider left behind.
func (w *world) judgeProcesses() {
	for deadline := time.Now().Add(5 * time.Second); ; {
		left := w.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.violation("nothing left", "processes run on: %s", strings.Join(left, "; "))
			return
		}
		if !w.pause(50 * time.Millisecond) {
			return
		}
	}
}

// processes lists those whose command line names the world's directory.
func (w *world) processes() (list []string) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(raw), w.dir+"/") {
			list = append(list, strings.ReplaceAll(strings.TrimRight(string(raw), "\x00"), "\x00", " "))
		}
	}
	return list
}
