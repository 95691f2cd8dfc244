package real

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// What is judged of jobs, by GitLab's own ledger.

var namesJob = regexp.MustCompile(`job (\d+)`)

// told is what Sluice's events say of jobs.
type told struct {
	accused map[int64]fleet.Fact // to be cut or orphaned
	named   map[int64]bool       // that, or warned of
	blind   bool                 // jobs that were cut could not be told
}

func (w *world) told() told {
	t := told{accused: map[int64]fleet.Fact{}, named: map[int64]bool{}}
	for _, f := range w.facts() {
		t.blind = t.blind || strings.Contains(f.Text, "cannot be told")
		for _, match := range namesJob.FindAllStringSubmatch(f.Text, -1) {
			id, _ := strconv.ParseInt(match[1], 10, 64)
			switch f.Kind {
			case fleet.FactCut, fleet.FactOrphan:
				t.accused[id], t.named[id] = f, true
			case fleet.FactWarning:
				t.named[id] = true
			}
		}
	}
	return t
}

// facts are all events.
func (w *world) facts() []fleet.Fact {
	if w.sees == nil {
		return nil
	}
	list, err := w.sees.Facts(w.life, 0, "", 100*allOf)
	if err != nil {
		return nil
	}
	return list
}

// events renders them, for a report.
func (w *world) events() string {
	var b strings.Builder
	for _, f := range w.facts() {
		fmt.Fprintf(&b, "%7.3f %s %s [%s] %s\n", f.At.Sub(w.began).Seconds(), f.Operation, f.VM, f.Kind, f.Text)
	}
	return b.String()
}

// place is where a job ran.
type place struct {
	vm, instance string
	gone         time.Time // when the instance was deleted; zero = it is there
}

// places are the incarnations there were, by system_id.
func (w *world) places() map[string]place {
	all := map[string]place{}
	for _, e := range w.Cloud().Journal() {
		h := w.HostOf(e.Instance)
		if h == nil || e.Step != "effect" {
			continue
		}
		p := place{vm: e.VM, instance: e.Instance}
		if e.Act != "create" && e.Act != "appear" {
			p.gone = e.At
		}
		all[h.SystemID()] = p
	}
	return all
}

// judgeJobs judges what became of each job.
func (w *world) judgeJobs() {
	places, told := w.places(), w.told()
	for _, j := range w.GitLab().Ledger().Jobs {
		fact, accused := told.accused[j.ID]
		switch j.Verdict {
		case simgitlab.VerdictCut:
			w.judgeCut(j, places[j.SystemID], told)
		case simgitlab.VerdictOrphaned:
			w.judgeOrphan(j, places[j.SystemID], told)
		case simgitlab.VerdictFailed, simgitlab.VerdictCanceled:
			w.violation("cut", "job %d is %s (%s), and no script fails here", j.ID, j.Verdict, j.FailureReason)
		case simgitlab.VerdictSucceeded:
			if !j.ScriptEnded && !w.plan.hurtsGitLab() { // else the trace's end may be lost
				w.violation("cut", "job %d is shown as a success, and its script did not end", j.ID)
			}
			if accused && !excused(j, fact) {
				w.violation("accounts", "job %d ended well, and an event says: %s", j.ID, fact.Text)
			}
		}
	}
}

// excused says whether an event may be wrong about a job: it was recorded as
// about to be cut, and ended by itself in that very moment.
func excused(j simgitlab.JobRecord, f fleet.Fact) bool {
	ahead := strings.Contains(f.Text, "may have run") || strings.Contains(f.Text, "the cap passed") || strings.Contains(f.Text, "the drain was skipped")
	return ahead && j.FinishedAt.After(f.At.Add(-10*time.Second))
}

// judgeCut judges a job that was cut: by a fault of the plan, or under the
// policy of an operation that tells of it.
func (w *world) judgeCut(j simgitlab.JobRecord, at place, told told) {
	end := j.FinishedAt
	if end.IsZero() || !at.gone.IsZero() && at.gone.Before(end) {
		end = at.gone
	}
	if w.hurtAfter(j) {
		return
	}
	for _, op := range w.operations() {
		if op.VM != at.vm || !w.waived(&op, at.instance, end) {
			continue
		}
		if !told.named[j.ID] && !told.blind && !w.watched(at.vm) {
			w.violation("accounts", "job %d was cut on %s under %s, and no event says so", j.ID, at.instance, op.ID)
		}
		return
	}
	w.violation("cut", "job %d (%s) was cut on %s at %.3f, and no cap had passed there", j.ID, j.FailureReason, at.instance, end.Sub(w.began).Seconds())
}

// judgeOrphan wants a job that never arrived told of, or watched for: whoever
// stopped the intake still looks.
func (w *world) judgeOrphan(j simgitlab.JobRecord, at place, told told) {
	if told.named[j.ID] || told.blind || w.hurtAfter(j) || w.hurtBefore(j) || w.watched(at.vm) {
		return
	}
	w.violation("accounts", "job %d was orphaned on %s, no event says so, and nobody watches for it", j.ID, at.instance)
}

// hurtBefore says whether a fault of the plan has ended the job's runner so
// shortly before that GitLab still took it for listening.
func (w *world) hurtBefore(j simgitlab.JobRecord) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.hurt[j.SystemID] {
		if since := j.AssignedAt.Sub(at.to); since >= 0 && since < 5*time.Second {
			return true
		}
	}
	return false
}

// watched says whether a watch for orphans of a VM is still to look.
func (w *world) watched(vm string) bool {
	chores, err := w.sees.UnfinishedChores(w.life)
	if err != nil {
		return false
	}
	for _, c := range chores {
		if c.VM == vm && c.Kind == fleet.ChoreOrphanWatch {
			return true
		}
	}
	return false
}
