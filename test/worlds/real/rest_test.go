package real

import (
	"fmt"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// When a world has come to rest.

// restLooks is for how many looks in a row a world must be at rest to end.
const restLooks = 3

// awaitRest waits until nothing is left to do: every operation has ended or
// waits for what no operation will bring, and every job has ended.
func (w *world) awaitRest() {
	deadline, rested, why := time.Now().Add(patience), 0, ""
	for rested < restLooks {
		if !w.pause(100 * time.Millisecond) {
			return
		}
		if why = w.moving(); why != "" {
			rested = 0
		} else {
			rested++
		}
		if time.Now().After(deadline) {
			w.violation("ends", "no rest in %s: %s", patience, why)
			return
		}
	}
}

// moving says what is not at rest; "" = nothing.
func (w *world) moving() string {
	journal := w.journal()
	if journal == nil {
		return "there is no journal"
	}
	ops, err := journal.Unfinished(w.life)
	if err != nil {
		return err.Error()
	}
	for i := range ops {
		if !w.mayWait(&ops[i]) {
			return fmt.Sprintf("%s (%s of %s) is %s: %s", ops[i].ID, ops[i].Kind, ops[i].VM, ops[i].Phase, ops[i].Waiting)
		}
	}
	for _, vm := range w.Spec().VMs {
		if h := w.Host(vm); h != nil && h.Up() && len(h.Containers()) > 0 && w.serving(vm) {
			return vm + " runs a job"
		}
	}
	return w.jobsMove()
}

// mayWait says whether an operation may wait for ever: behind a VM that is out
// of service and that nobody brings back.
func (w *world) mayWait(op *fleet.Operation) bool {
	if op.Phase != fleet.PhaseQueued || !strings.Contains(op.Waiting, "not serving") && !strings.Contains(op.Waiting, "goes first") {
		return false
	}
	for _, vm := range w.Spec().VMs {
		if vm != op.VM && !w.serving(vm) {
			return true
		}
	}
	return false
}

// jobsMove names a job that a runner will still take or bring to its end.
func (w *world) jobsMove() string {
	serving := false
	on := map[string]bool{}
	for _, vm := range w.Spec().VMs {
		if h := w.Host(vm); h != nil {
			on[h.SystemID()] = true
			serving = serving || w.serving(vm)
		}
	}
	for _, j := range w.GitLab().Ledger().Jobs {
		switch {
		case j.Verdict == simgitlab.VerdictPending && serving:
			return fmt.Sprintf("job %d waits, and somebody could take it", j.ID)
		case j.Verdict == simgitlab.VerdictRunning && on[j.SystemID] && !w.hurtAfter(j):
			return fmt.Sprintf("job %d runs", j.ID)
		}
	}
	return ""
}

// hurtAfter says whether a fault of the plan has hit the job's runner while it
// had the job.
func (w *world) hurtAfter(j simgitlab.JobRecord) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.hurt[j.SystemID] {
		if at.After(j.AssignedAt) && (j.FinishedAt.IsZero() || at.Before(j.FinishedAt)) {
			return true
		}
	}
	return false
}
