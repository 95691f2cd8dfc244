package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// jobPlaceRecord is GET /projects/:id/jobs/:job_id, as far as it is used: the
// full job entity alone has runner_manager (facts/gitlab.md 1.4).
type jobPlaceRecord struct {
	ID     int64  `json:"id"`
	Status string `json:"status"`
	Runner *struct {
		ID int64 `json:"id"`
	} `json:"runner"`
	Manager *struct {
		SystemID string `json:"system_id"`
	} `json:"runner_manager"`
}

// ended are the statuses that no job leaves. A job that two-phase assignment
// left pending runs all the same (facts/gitlab.md 1.6).
var ended = []string{"success", "failed", "canceled", "skipped"}

// Place asks where a job runs. Errors: CodeUnavailable, CodeRateLimited,
// CodeForbidden, CodeNotFound (also: the token does not see its project).
func (e *Entry) Place(ctx context.Context, project, job int64) (fleet.JobPlace, error) {
	c := call{
		what: fmt.Sprintf("show job %d of project %d", job, project), client: e.in.user, method: http.MethodGet,
		path:    fmt.Sprintf("projects/%d/jobs/%d", project, job),
		hint403: "the token's user needs the Reporter role in the job's project",
		hint404: "the job is gone, or the token's user does not see its project",
	}
	record, a, err := get[jobPlaceRecord](ctx, e.in, c)
	if err != nil {
		return fleet.JobPlace{}, err
	}
	if record.ID != job || record.Status == "" {
		return fleet.JobPlace{}, e.in.badAnswer(c, a.Response)
	}
	place := fleet.JobPlace{Ended: slices.Contains(ended, record.Status)}
	if record.Runner != nil {
		place.RunnerID = record.Runner.ID
	}
	if record.Manager != nil {
		place.SystemID = record.Manager.SystemID
	}
	return place, nil
}
