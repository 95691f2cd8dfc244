package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Jobs is an engine.Jobs: it reads as a runner entry does, and writes with the
// write token alone.
type Jobs struct {
	*Writer
	entry *Entry
}

var _ engine.Jobs = (*Jobs)(nil)

// Jobs returns those of the entry, for a writer.
func (e *Entry) Jobs(w *Writer) *Jobs { return &Jobs{Writer: w, entry: e} }

// jobState is the full job entity, as far as it is used (facts/gitlab.md 1.4).
type jobState struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name"`
	Status     string     `json:"status"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Pipeline   struct {
		ID     int64  `json:"id"`
		Status string `json:"status"`
	} `json:"pipeline"`
	Manager *struct {
		SystemID string `json:"system_id"`
	} `json:"runner_manager"`
}

// Job implements engine.Jobs: the job first, then the jobs of its pipeline.
// Whether it was retried no field says; but GitLab leaves a retried job out of
// its pipeline's list, and shows the one in its place.
func (j *Jobs) Job(ctx context.Context, job fleet.Job) (fleet.JobReading, error) {
	c := j.get("show "+job.String(), fmt.Sprintf("projects/%d/jobs/%d", job.ProjectID, job.ID))
	state, a, err := get[jobState](ctx, j.entry.in, c)
	if err != nil {
		return fleet.JobReading{}, err
	}
	if state.ID != job.ID || state.Status == "" || state.Pipeline.ID == 0 {
		return fleet.JobReading{}, j.entry.in.badAnswer(c, a.Response)
	}
	g := fleet.JobReading{
		ServerTime: a.serverTime(), Status: state.Status, PipelineStatus: state.Pipeline.Status,
		StartedAt: timeOf(state.StartedAt), FinishedAt: timeOf(state.FinishedAt),
	}
	if state.Manager != nil {
		g.SystemID = state.Manager.SystemID
	}
	siblings, err := j.pipeline(ctx, job, state.Pipeline.ID)
	for _, other := range siblings {
		switch {
		case other.ID == state.ID:
		case other.Name == state.Name && other.ID > state.ID:
			g.Newer = max(g.Newer, other.ID)
		case slices.Contains([]string{"canceling", "canceled"}, other.Status):
			g.Canceled = append(g.Canceled, other.ID)
		}
	}
	return g, err
}

func (j *Jobs) get(what, path string) call {
	return call{
		what: what, client: j.entry.in.user, method: http.MethodGet, path: path,
		hint403: "the token's user needs the Reporter role in the job's project",
		hint404: "the job is gone, or the token's user does not see its project",
	}
}

// pipeline lists the latest jobs of a pipeline, all pages or an error.
func (j *Jobs) pipeline(ctx context.Context, job fleet.Job, id int64) ([]jobState, error) {
	c := j.get(fmt.Sprintf("list the jobs of pipeline %d", id), fmt.Sprintf("projects/%d/pipelines/%d/jobs", job.ProjectID, id))
	var all []jobState
	for page := 1; page <= maxPages; page++ {
		c.query = struct {
			PerPage int `url:"per_page"`
			Page    int `url:"page"`
		}{perPage, page}
		list, a, err := get[[]jobState](ctx, j.entry.in, c)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		size := perPage
		if a.ItemsPerPage > 0 {
			size = min(size, int(a.ItemsPerPage))
		}
		if a.NextPage == 0 && a.NextLink == "" && len(list) < size {
			return all, nil
		}
	}
	return nil, fleet.Errorf(fleet.CodeUnavailable, "%s lists no end of jobs of pipeline %d", j.entry.in.name(), id)
}

// UnwritableProjects lists those projects of a project runner in which the
// write token's user is less than a Developer: their orphans stay as they are.
// For other kinds of runner there is no such list. Errors: as for readings.
func (j *Jobs) UnwritableProjects(ctx context.Context) ([]string, error) {
	d, err := j.entry.details(ctx, j.entry.in.cfg.Now())
	if err != nil || d.RunnerType != projectRunner {
		return nil, err
	}
	var out []string
	for _, p := range d.Projects[:min(len(d.Projects), mostProjects)] {
		may, err := j.in.atLeast(ctx, p.ID, developer)
		if err != nil {
			return nil, err
		}
		if !may {
			out = append(out, p.Path)
		}
	}
	return out, nil
}
