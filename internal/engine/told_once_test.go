package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// lostProof is a world in which the delete of a was committed under a proof that
// was lost again: the host has booted, and its runner works on a job. Then the host
// is out of reach, too.
func lostProof(t *testing.T) (w *enginetest.World, id string) {
	t.Helper()
	w = enginetest.New("a")
	id = w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.Unreachable = fleet.UnreachableProceed })
	once(w, "commit:after", func() bool { return !w.Op(id).Delete.IntentAt.IsZero() }, func() {
		w.Advance(20 * time.Second)
		w.Reboot("a")
		w.Job("a", 43, 3*time.Hour)
	})
	w.Run(90 * time.Second)
	if op := w.Op(id); op.Phase != fleet.PhaseDraining || op.Delete.IntentAt.IsZero() || len(op.Drain.Jobs) != 1 {
		t.Fatalf("%s, intent at %s, jobs %v\n%s", op.Phase, op.Delete.IntentAt, op.Drain.Jobs, w.Story())
	}
	w.VM("a").Cutoff = true
	return w, id
}

// It is the waiver that cuts jobs, not the intent under which an earlier proof was
// lost.
func TestAWaiverAfterALostProofTellsWhichJobsAreCut(t *testing.T) {
	w, id := lostProof(t)
	w.Run(2 * time.Hour)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if !slices.Equal(w.Cut, []int64{43}) {
		t.Fatalf("cut %v", w.Cut)
	}
	recorded(t, w, id, 43)
}

func TestAWaiverAfterALostProofTellsThatItCannotBeToldWhichJobsAreCut(t *testing.T) {
	w, id := lostProof(t)
	w.GitLabDown = true
	w.Run(2 * time.Hour)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	recorded(t, w, id, 43) // as last heard of
	says(t, w, "[warning] which jobs run on f/a cannot be told (500 Internal Server Error): they are cut with it")
}

// The delete's answer is lost, so that it is looked at once more under the same
// waiver: that is no news.
func TestASecondLookUnderTheSameWaiverTellsNothingTwice(t *testing.T) {
	for name, known := range map[string]bool{"GitLab does not answer": true, "its system_id was never seen": false} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			if known {
				w.Ask(fleet.KindDrain, "a") // since then its row knows the system_id
				w.Run(time.Hour)
				w.Ask(fleet.KindUndrain, "a")
				w.Run(time.Hour)
			}
			w.VM("a").Cutoff, w.GitLabDown = true, known
			w.DeleteDelay, w.Lose = 30*time.Second, map[string]int{"delete": 2}
			id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
			w.Run(10 * time.Minute)
			if op := ended(t, w, id, fleet.PhaseSucceeded, ""); op.Delete.Attempt < 2 {
				t.Fatalf("%d attempts\n%s", op.Delete.Attempt, w.Story())
			}
			if n := strings.Count(w.Story(), "[warning] which jobs run on f/a cannot be told"); n != 1 {
				t.Errorf("told %d times\n%s", n, w.Story())
			}
		})
	}
}

// The watch begins with the end of the drain, the delete records the job after
// that, and GitLab shows it running still: it is told by one of the two.
func TestAJobThatADeleteHasRecordedIsNotToldAgainByTheWatch(t *testing.T) {
	w := tracedWorld()
	vm := w.VM("a")
	w.Job("a", 42, 3*time.Hour)
	id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) {
		r.Policy.Cap, r.Policy.HardCap, r.Policy.Unreachable = 2*time.Hour, 2*time.Hour, fleet.UnreachableProceed
	})
	w.Run(time.Minute)
	w.OrphanOn(vm, fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now().Add(-time.Minute)})
	vm.Cutoff = true
	w.Run(3 * time.Hour)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	recorded(t, w, id, 42, lostJob)
	if told(w, fleet.FactCut) != 1 || w.Meter.CutJobs != 2 {
		t.Errorf("told %d times, counted %d\n%s", told(w, fleet.FactCut), w.Meter.CutJobs, w.Story())
	}
}
