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
	deadline, rested, why, last := time.Now().Add(patience), 0, "", int64(0)
	for rested < restLooks {
		if !w.pause(200 * time.Millisecond) {
			return
		}
		if why = w.moving(); why != "" {
			rested = 0
		} else {
			rested++
		}
		if fact := w.lastFact(); fact > last || w.pace.late() {
			last, deadline = max(fact, last), time.Now().Add(patience)
		}
		if time.Now().After(deadline) || time.Since(w.began) > 10*patience {
			w.violation("ends", "no rest, and nothing new for %s: %s", patience, why)
			return
		}
	}
}

// lastFact is the newest event's number.
func (w *world) lastFact() int64 {
	if w.journal() == nil {
		return 0
	}
	last, err := w.sees.LastFact(w.life)
	if err != nil {
		return 0
	}
	return last
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
		case j.Verdict == simgitlab.VerdictRunning && on[j.SystemID] && !w.hurtAfter(j) && (j.Heard || !w.hurtBefore(j)):
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
		if at.to.After(j.AssignedAt) && (j.FinishedAt.IsZero() || at.from.Before(j.FinishedAt)) {
			return true
		}
	}
	return false
}
