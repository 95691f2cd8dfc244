package enginetest

import (
	"context"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Lost is an orphan as GitLab has it.
type Lost struct {
	fleet.Job
	vm       *VM
	Graceful bool  // canceled in two steps
	Newer    int64 // the job in its place
	Finished time.Time
	Cancels  int     // calls, effective or not
	Retries  int     // new jobs that were made
	Others   []int64 // jobs of its pipeline that are canceled
}

// End has GitLab show it ended.
func (l *Lost) End(status string, at time.Time) {
	l.Status, l.Finished = status, at
	l.vm.Orphans = slices.DeleteFunc(slices.Clone(l.vm.Orphans), func(j fleet.Job) bool { return j.ID == l.ID })
}

// Retry makes the job in its place, as GitLab does; 0 = it refuses.
func (l *Lost) Retry() int64 {
	if l.Newer != 0 || l.Status == "running" {
		return 0
	}
	l.Newer = l.ID + 1000
	l.Retries++
	return l.Newer
}

type jobs struct{ w *World }

var _ engine.Jobs = jobs{}

func (j jobs) Job(_ context.Context, about fleet.Job) (fleet.JobReading, error) {
	if err := j.w.before("job"); err != nil {
		return fleet.JobReading{}, err
	}
	l := j.w.Lost[about.ID]
	return fleet.JobReading{
		ServerTime: j.w.now.Truncate(time.Second), Status: l.Status, SystemID: l.vm.SystemID, StartedAt: l.StartedAt,
		FinishedAt: l.Finished, PipelineStatus: "running", Newer: l.Newer, Canceled: l.Others,
	}, nil
}

func (j jobs) Cancel(_ context.Context, about fleet.Job, force bool) error {
	call := "cancel"
	if force {
		call = "force"
	}
	if err := j.w.before(call); err != nil {
		return err
	}
	l := j.w.Lost[about.ID]
	l.Cancels++
	switch {
	case l.Status == "running" && l.Graceful:
		l.Status = "canceling"
	case l.Status == "running", l.Status == "canceling" && force:
		l.End("canceled", j.w.now)
	}
	j.w.journal("%s of job %d", call, about.ID)
	return j.w.answer(call)
}

func (j jobs) Retry(_ context.Context, about fleet.Job) (int64, error) {
	if err := j.w.before("retry"); err != nil {
		return 0, err
	}
	id := j.w.Lost[about.ID].Retry()
	if id == 0 {
		return 0, fleet.Errorf(fleet.CodeForbidden, "403 Forbidden - Job is not retryable")
	}
	j.w.journal("retry of job %d: job %d", about.ID, id)
	return id, j.w.answer("retry")
}
