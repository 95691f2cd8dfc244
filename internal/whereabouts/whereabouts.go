package whereabouts

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Limits of one search. Who asks waits for it.
const (
	searchLimit = 12 * time.Second // all of it
	jobLimit    = 4 * time.Second  // GitLab's word on the job
	hostLimit   = 5 * time.Second  // one host
	sideBySide  = 16               // hosts at once
)

// Job names a CI job.
type Job struct {
	Project int64
	ID      int64
}

// Place is what was found out about a job.
type Place struct {
	VM        string // "" = not found
	Elsewhere bool   // proven: on none of the fleet's VMs
	Reason    string // how it is known, or why it is not
}

// Jobs is what is asked of GitLab; gitlab.Entry fills it.
type Jobs interface {
	Place(ctx context.Context, project, job int64) (fleet.JobPlace, error)
}

// Rows are the stored VMs.
type Rows interface {
	VMs(ctx context.Context, fleetName string) ([]fleet.VM, error)
}

// Options are what a Finder is made of. Fleets whose GitLab is no Jobs, or that
// have none, are searched on their hosts alone.
type Options struct {
	Fleets map[string]*engine.Fleet
	Store  Rows
	Log    *slog.Logger
}

// Finder finds jobs.
type Finder struct{ Options }

// New makes a Finder.
func New(o Options) *Finder { return &Finder{o} }

// Locate says on which VM of a fleet a job runs. It never fails: what cannot be
// found out is a Place without a VM, and its reason.
func (f *Finder) Locate(ctx context.Context, fleetName string, job Job) Place {
	ctx, cancel := context.WithTimeout(ctx, searchLimit)
	defer cancel()
	target := f.Fleets[fleetName]
	if target == nil {
		return Place{Reason: "this process has no way to the fleet's VMs"}
	}
	systemID, place := f.ask(ctx, target, job)
	if place != nil {
		return *place
	}
	if vm := f.stored(ctx, fleetName, systemID); vm != "" {
		return Place{VM: vm, Reason: fmt.Sprintf("GitLab says that job %d runs on system_id %s", job.ID, systemID)}
	}
	return f.search(ctx, target, job, systemID)
}

// ask is GitLab's word: a system_id, a place that settles it, or neither.
func (f *Finder) ask(ctx context.Context, target *engine.Fleet, job Job) (systemID string, settled *Place) {
	jobs, ok := target.GitLab.(Jobs)
	if !ok || job.Project == 0 {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	place, err := jobs.Place(ctx, job.Project, job.ID)
	switch {
	case err != nil:
		f.Log.InfoContext(ctx, "GitLab does not say where the asking job runs", "fleet", target.Name, "job_id", job.ID, "error", err)
		return "", nil
	case place.Ended:
		return "", &Place{Elsewhere: true, Reason: fmt.Sprintf("job %d has ended", job.ID)}
	case place.RunnerID != 0 && target.RunnerID != 0 && place.RunnerID != target.RunnerID:
		return "", &Place{Elsewhere: true, Reason: fmt.Sprintf("job %d runs on runner %d", job.ID, place.RunnerID)}
	}
	return place.SystemID, nil
}

// stored is the member with that system_id, if there is exactly one.
func (f *Finder) stored(ctx context.Context, fleetName, systemID string) string {
	if systemID == "" {
		return ""
	}
	rows, err := f.Store.VMs(ctx, fleetName)
	if err != nil {
		f.Log.WarnContext(ctx, "the stored VMs cannot be read", "fleet", fleetName, "error", err)
		return ""
	}
	found := ""
	for i := range rows {
		if rows[i].SystemID != systemID {
			continue
		}
		if found != "" {
			return ""
		}
		found = rows[i].VM
	}
	return found
}
