package gitlab

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// managerRecord is an element of GET /runners/:id/managers. client-go's own
// type lacks job_execution_status (facts/gitlab.md 7.2).
type managerRecord struct {
	ID                 int64      `json:"id"`
	SystemID           string     `json:"system_id"`
	Version            string     `json:"version"`
	Status             string     `json:"status"`
	CreatedAt          *time.Time `json:"created_at"`
	ContactedAt        *time.Time `json:"contacted_at"`
	JobExecutionStatus string     `json:"job_execution_status"`
}

// managerList is one answer with GitLab's clock.
type managerList struct {
	all []fleet.Manager
	at  time.Time
}

// of returns the manager with that system_id, whether there is one, and how
// many more have the same.
func (l managerList) of(systemID string) (m fleet.Manager, present bool, others int) {
	for _, one := range l.all {
		switch {
		case one.SystemID != systemID:
		case present:
			others++
		default:
			m, present = one, true
		}
	}
	return m, present, others
}

// anyActive says whether a manager of the entry is known to run a job.
func (l managerList) anyActive() bool {
	for _, m := range l.all {
		if m.Execution == fleet.ExecutionActive {
			return true
		}
	}
	return false
}

// Managers implements engine.GitLab.
func (e *Entry) Managers(ctx context.Context) ([]fleet.Manager, time.Time, error) {
	l, _, err := e.listManagers(ctx, e.in.cfg.Now())
	return l.all, l.at, err
}

// listManagers shares one request among all VMs of the fleet. The list is
// never paginated (facts/gitlab.md section 2).
func (e *Entry) listManagers(ctx context.Context, after time.Time) (managerList, time.Time, error) {
	return e.managers.get(ctx, "", after, e.fetchManagers)
}

// fetchManagers asks for the list.
func (e *Entry) fetchManagers(ctx context.Context) (managerList, error) {
	c := e.call("list the managers of", "/managers")
	records, a, err := get[[]managerRecord](ctx, e.in, c)
	if err != nil {
		return managerList{}, e.in.only404(c, a.Response, err)
	}
	l := managerList{at: a.serverTime(), all: make([]fleet.Manager, 0, len(records))}
	for _, r := range records {
		if r.ID == 0 || r.SystemID == "" {
			return managerList{}, e.in.badAnswer(c, a.Response)
		}
		l.all = append(l.all, r.manager())
	}
	return l, nil
}

func (r managerRecord) manager() fleet.Manager {
	return fleet.Manager{
		ID: r.ID, SystemID: r.SystemID, Status: r.Status, Execution: execution(r.JobExecutionStatus),
		CreatedAt: timeOf(r.CreatedAt), ContactedAt: timeOf(r.ContactedAt), Version: r.Version,
	}
}

// execution reads the status; a missing or a new word is unknown, never idle.
func execution(word string) fleet.Execution {
	switch word {
	case "idle":
		return fleet.ExecutionIdle
	case "active":
		return fleet.ExecutionActive
	}
	return fleet.ExecutionUnknown
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
