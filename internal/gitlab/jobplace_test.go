package gitlab_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

func TestAJobsPlaceIsItsManagerWhileItRuns(t *testing.T) {
	w := newWorld(t, nil)
	p := w.start("s_aaa", simgitlab.JobSpec{Name: "deploy", Duration: time.Minute})
	project := p.JobInfo.ProjectID
	place, err := w.entry.Place(t.Context(), project, p.ID)
	want := fleet.JobPlace{RunnerID: simgitlab.DefaultRunnerID, SystemID: "s_aaa"}
	if err != nil || place != want {
		t.Errorf("%+v, %v; want %+v", place, err, want)
	}
	w.succeed(p)
	if place, err = w.entry.Place(t.Context(), project, p.ID); err != nil || !place.Ended {
		t.Errorf("after its end: %+v, %v", place, err)
	}
	if _, err := w.entry.Place(t.Context(), project, p.ID+1000); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("a job that is none: %v", err)
	}
	if _, err := w.entry.Place(t.Context(), project+1, p.ID); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("a job of another project: %v", err)
	}
}

func TestAJobThatNobodyTookHasNoPlace(t *testing.T) {
	w := newWorld(t, nil)
	p := w.start("s_aaa", simgitlab.JobSpec{Name: "deploy", Duration: time.Minute})
	id := w.Enqueue(simgitlab.JobSpec{Name: "waits", Duration: time.Minute})
	if place, err := w.entry.Place(t.Context(), p.JobInfo.ProjectID, id); err != nil || place != (fleet.JobPlace{}) {
		t.Errorf("%+v, %v", place, err)
	}
}
