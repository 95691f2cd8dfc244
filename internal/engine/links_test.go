package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// asked is how many requests GitLab has had.
func asked(w *enginetest.World) int { return costOf(w).requests }

// A drain whose jobs go on as they were asks GitLab for one answer a minute,
// which notices an outage, and for the lists of jobs each five. cases.md T71.
func TestADrainAtRestAsksGitLabSeldom(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 42, time.Hour)
	w.Ask(fleet.KindDrain, "a", func(r *fleet.Request) { r.Policy.Cap = 2 * time.Hour })
	w.Run(90 * time.Second) // the first links, and those of after the stop
	before, lists := asked(w), w.Calls["read"]
	w.Run(30 * time.Minute)
	if n := w.Calls["read"] - lists; n < 5 || n > 6 {
		t.Errorf("the jobs were listed %d times in half an hour, want each five minutes\n%s", n, w.Story())
	}
	if n := asked(w) - before; n < 30 || n > 45 {
		t.Errorf("%d requests in half an hour, want one a minute and the lists\n%s", n, w.Story())
	}
}

// What people see of the jobs is at most a minute behind the host's containers.
func TestTheLinksAreReadAnewWhenTheHostShowsOtherJobs(t *testing.T) {
	for name, job := range map[string]int64{"a job has ended": 0, "another is there": 43} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			w.Job("a", 42, time.Hour)
			id := w.Ask(fleet.KindDrain, "a", func(r *fleet.Request) { r.Policy.Cap = 2 * time.Hour })
			w.Run(2 * time.Minute) // at rest
			vm := w.VM("a")
			if vm.Busy = job; job == 0 {
				vm.Quit = false // its process goes on without a job that GitLab lists
			}
			w.Run(70 * time.Second)
			if jobs := w.Op(id).Drain.Jobs; job == 0 && len(jobs) > 0 || job != 0 && (len(jobs) != 1 || jobs[0].ID != job) {
				t.Errorf("a minute later the links are still %v\n%s", jobs, w.Story())
			}
		})
	}
}

// GitLab's own word that a manager runs no job is counted from the jobs that
// the lists would hold: a clean look is one request.
func TestACleanLookOfTheOrphanWatchIsOneRequest(t *testing.T) {
	w := enginetest.New("a")
	id := w.Ask(fleet.KindDrain, "a")
	w.Run(time.Second)
	if op := w.Op(id); op.Phase != fleet.PhaseSucceeded {
		t.Fatalf("%s\n%s", op.Phase, w.Story())
	}
	before := asked(w)
	w.Run(time.Hour)
	if open, _ := w.Store.UnfinishedChores(t.Context()); len(open) > 0 {
		t.Fatalf("the watch goes on\n%s", w.Story())
	}
	if n := asked(w) - before; n != 4 {
		t.Errorf("%d requests for the watch's four looks\n%s", n, w.Story())
	}
}
