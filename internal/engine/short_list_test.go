package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// bentReading is a GitLab whose readings are bent.
type bentReading struct {
	engine.GitLab
	bend func(*fleet.GitLabReading)
}

func (b bentReading) Read(ctx context.Context, about fleet.Subject, after time.Time) *fleet.GitLabReading {
	r := b.GitLab.Read(ctx, about, after)
	b.bend(r)
	return r
}

// cutShort is a list of jobs whose second page did not come.
func cutShort(r *fleet.GitLabReading) { r.Unknown = "the second page did not come" }

// twoJobs is a world where jobs 42 and 43 run on a, and GitLab's list of them is
// cut short after the first.
func twoJobs() *enginetest.World {
	w := enginetest.New("a")
	w.Job("a", 42, time.Hour)
	w.VM("a").Leftovers = []fleet.Container{{Name: "runner-43", State: "running", JobID: 43}}
	w.With = func(f *engine.Fleet) { f.GitLab = bentReading{f.GitLab, cutShort} }
	return w
}

// recorded fails unless the operation has recorded these jobs as cut, each once.
func recorded(t *testing.T, w *enginetest.World, id string, want ...int64) {
	t.Helper()
	var got []int64
	for _, job := range w.Op(id).CutJobs {
		got = append(got, job.ID)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("recorded as cut %v, want %v\n%s", got, want, w.Story())
	}
}

// A job that GitLab's answer does not come to is cut all the same, and its
// container tells of it. Seed 111864 of the worlds.
func TestAtTheOverrunTheContainersTellOfTheJobsThatAShortListLacks(t *testing.T) {
	w := twoJobs()
	id := w.Ask(fleet.KindDrain, "a", func(r *fleet.Request) { r.Policy.OnOverrun = fleet.OverrunProceed })
	w.Run(time.Hour)
	recorded(t, w, id, 42, 43)
}

// The same where the drain is skipped: a glance shows no containers, so that
// those are looked at besides.
func TestASkipRecordsTheJobsThatAShortListLacks(t *testing.T) {
	w := twoJobs()
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	w.Run(time.Hour)
	recorded(t, w, id, 42, 43)
}

// A whole answer without jobs is GitLab's word: what was heard of before has
// ended, though the runner's process goes on.
func TestAtTheOverrunAWholeAnswerWithoutJobsIsBelievedOverWhatWasHeard(t *testing.T) {
	for name, c := range map[string]struct {
		whole bool
		want  []int64
	}{
		"whole":        {true, nil},
		"not answered": {false, []int64{42}},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			w.Job("a", 42, time.Hour)
			var id string
			empty := func(r *fleet.GitLabReading) {
				if at := w.Op(id).Drain.Deadline; at.IsZero() || w.Now().Before(at) {
					return
				}
				r.Running = nil
				if !c.whole {
					cutShort(r)
				}
			}
			w.With = func(f *engine.Fleet) { f.Hosts, f.GitLab = shells{f.Hosts}, bentReading{f.GitLab, empty} }
			id = w.Ask(fleet.KindDrain, "a", func(r *fleet.Request) { r.Policy.OnOverrun = fleet.OverrunProceed })
			w.Run(time.Hour)
			if jobs := w.Op(id).Drain.Jobs; len(jobs) != 1 || jobs[0].ID != 42 {
				t.Fatalf("last heard of %v", jobs)
			}
			recorded(t, w, id, c.want...)
		})
	}
}

// Two jobs ran when GitLab was last heard; one of them had ended when the other
// was cut at the cap. The delete's answer is lost, and at the second look the host
// is gone, too. Seed 235887 of the worlds.
func TestTheLookBeforeASecondDeleteRecordsNothingThatWasLastHeardAnew(t *testing.T) {
	w := enginetest.New("a")
	w.DeleteDelay, w.Lose = 30*time.Second, map[string]int{"delete": 1}
	w.Job("a", 42, time.Hour)
	w.Orphan("a", fleet.Job{ID: 41, StartedAt: w.Now()})
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.OnOverrun = fleet.OverrunProceed })
	w.Run(2 * time.Minute)
	w.GitLabDown = true // and 42 has a container, 41 none any more
	w.Run(10 * time.Minute)
	op := w.Op(id)
	if op.Drain.Verdict != fleet.VerdictOverrun || op.Delete.Attempt != 2 || len(op.Drain.Jobs) != 2 {
		t.Fatalf("%s with %d attempts, last heard of %v\n%s", op.Drain.Verdict, op.Delete.Attempt, op.Drain.Jobs, w.Story())
	}
	recorded(t, w, id, 42)
}
