package gitlab

import (
	"context"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Read implements engine.GitLab: the managers, and the lists of running and of
// canceling jobs of one system_id. The three are asked for at once: between
// the end of a runner's process and the delete of its VM every round trip
// counts. TakenAt is when the first of them began.
func (e *Entry) Read(ctx context.Context, about fleet.Subject, after time.Time) *fleet.GitLabReading {
	r := &fleet.GitLabReading{Subject: about, TakenAt: e.in.cfg.Now()}
	if about.SystemID == "" {
		r.Unknown = "the VM's system_id is not known"
		return r
	}
	var p parts
	var wg sync.WaitGroup
	wg.Go(func() { p.managers, p.managersAt, p.managersErr = e.listManagers(ctx, after) })
	wg.Go(func() { p.running, p.runningAt, p.runningErr = e.listJobs(ctx, about.SystemID, "running", after) })
	wg.Go(func() {
		p.canceling, p.cancelingAt, p.cancelingErr = e.listJobs(ctx, about.SystemID, "canceling", after)
	})
	wg.Wait()
	p.fill(r)
	if r.Busy() == fleet.BusyIdle && !p.managers.anyActive() {
		r.Unclaimed = e.unclaimed(ctx, after)
	}
	return r
}

// parts are the answers of one reading.
type parts struct {
	managers    managerList
	managersAt  time.Time
	managersErr error

	running    []fleet.Job
	runningAt  time.Time
	runningErr error

	canceling    []fleet.Job
	cancelingAt  time.Time
	cancelingErr error
}

// fill puts the parts together. Jobs that were seen stay in a reading that is
// otherwise unknown, for people.
func (p *parts) fill(r *fleet.GitLabReading) {
	for _, at := range []time.Time{p.managersAt, p.runningAt, p.cancelingAt} {
		if at.Before(r.TakenAt) {
			r.TakenAt = at
		}
	}
	r.Running, r.Canceling = p.running, p.canceling
	for _, err := range []error{p.managersErr, p.runningErr, p.cancelingErr} {
		if err != nil {
			r.Unknown = err.Error()
			break
		}
	}
	if p.managersErr != nil {
		return
	}
	r.ServerTime = p.managers.at
	r.Manager, r.Present, r.OtherClaims = p.managers.of(r.Subject.SystemID)
	if r.Unknown == "" && r.Present && r.Manager.Execution == fleet.ExecutionUnknown {
		r.Unknown = "this GitLab does not say whether the manager executes jobs (job_execution_status is missing: it is older than 18)"
	}
}

// unclaimed lists jobs that execute on the entry and are linked to no manager,
// for people. It can tell them only while no manager is active: then every
// executing job is one. The entry's own status says in one call whether there
// are any (facts/gitlab.md 1.7, 2). What cannot be read is left out.
func (e *Entry) unclaimed(ctx context.Context, after time.Time) []fleet.Job {
	d, err := e.details(ctx, after)
	if err != nil || d.JobExecutionStatus != fleet.ExecutionActive {
		return nil
	}
	var all []fleet.Job
	for _, status := range []string{"running", "canceling"} {
		jobs, _, err := e.listJobs(ctx, "", status, after)
		if err != nil {
			return all
		}
		all = append(all, jobs...)
	}
	return all
}
