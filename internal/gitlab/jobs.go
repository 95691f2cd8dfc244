package gitlab

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const (
	perPage  = 100
	maxPages = 10 // a thousand executing jobs on one VM: something is wrong
)

// jobsQuery is the query of GET /runners/:id/jobs. client-go's own options
// lack system_id.
type jobsQuery struct {
	SystemID string `url:"system_id,omitempty"`
	Status   string `url:"status"`
	PerPage  int    `url:"per_page"`
	Page     int    `url:"page,omitempty"`
}

// jobRecord is an element of that list, as far as it is used.
type jobRecord struct {
	ID        int64      `json:"id"`
	Name      string     `json:"name"`
	Status    string     `json:"status"`
	WebURL    string     `json:"web_url"`
	StartedAt *time.Time `json:"started_at"`
	Project   struct {
		ID   int64  `json:"id"`
		Path string `json:"path_with_namespace"`
	} `json:"project"`
}

func (r jobRecord) job() fleet.Job {
	return fleet.Job{
		ID: r.ID, Name: r.Name, Project: r.Project.Path, ProjectID: r.Project.ID,
		Status: r.Status, URL: link(r.WebURL), StartedAt: timeOf(r.StartedAt),
	}
}

// link lets only web addresses through: the links end in pages and terminals.
func link(text string) string {
	if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return text
}

// listJobs returns every job of one status on a system_id (empty: on the whole
// entry), all pages or an error. Totals are never read: with system_id GitLab
// gives none (facts/gitlab.md 1.2).
func (e *Entry) listJobs(ctx context.Context, systemID, status string, after time.Time) ([]fleet.Job, time.Time, error) {
	return e.jobs.get(ctx, systemID+" "+status, after, func(ctx context.Context) ([]fleet.Job, error) {
		var all []fleet.Job
		for page := 1; page <= maxPages; page++ {
			jobs, more, err := e.jobsPage(ctx, jobsQuery{SystemID: systemID, Status: status, PerPage: perPage, Page: page})
			if err != nil {
				return nil, err
			}
			all = append(all, jobs...)
			if !more {
				return all, nil
			}
		}
		return nil, fleet.Errorf(fleet.CodeUnavailable, "%s lists no end of %s jobs on runner %d", e.in.name(), status, e.id)
	})
}

// jobsPage returns one page and whether another has to be asked for. A full
// page without a link may be the last or a list cut short: that is asked.
func (e *Entry) jobsPage(ctx context.Context, q jobsQuery) (jobs []fleet.Job, more bool, err error) {
	c := e.call(fmt.Sprintf("list the %s jobs of", q.Status), "/jobs")
	c.query = q
	records, a, err := get[[]jobRecord](ctx, e.in, c)
	if err != nil {
		return nil, false, err
	}
	for _, r := range records {
		if r.ID == 0 || r.Status != q.Status {
			return nil, false, e.in.badAnswer(c, a.Response)
		}
		jobs = append(jobs, r.job())
	}
	size := perPage
	if a.ItemsPerPage > 0 {
		size = min(size, int(a.ItemsPerPage))
	}
	return jobs, a.NextPage > 0 || a.NextLink != "" || len(records) >= size, nil
}

// TraceEmpty implements engine.GitLab. Whitespace counts as empty.
func (e *Entry) TraceEmpty(ctx context.Context, job fleet.Job) (bool, error) {
	if job.ProjectID == 0 || job.ID == 0 {
		return false, fleet.Errorf(fleet.CodeInvalid, "%s: its project is not known, so its trace cannot be read", job)
	}
	a, err := e.in.do(ctx, call{
		what: "show the trace of " + job.String(), client: e.in.user, method: http.MethodGet,
		path:    fmt.Sprintf("projects/%d/jobs/%d/trace", job.ProjectID, job.ID),
		hint403: "the token's user needs the Reporter role in the job's project",
		hint404: "the job is gone, or the token's user does not see its project",
	})
	if err != nil {
		return false, err
	}
	if strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		return false, e.in.badAnswer(call{what: "show the trace of " + job.String()}, a.Response)
	}
	return len(bytes.TrimSpace(a.body)) == 0, nil
}
