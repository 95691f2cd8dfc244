package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Hook is a webhook of a project, as GitLab describes it.
type Hook struct {
	ID  int64
	URL string
	// Events are the kinds that are sent: pipeline, push, tag, release, merge, job.
	Events []string
	// Alert is executable, temporarily_disabled or disabled; "" = an old GitLab.
	Alert         string
	DisabledUntil time.Time
	VerifiesTLS   bool
	// Status is the last answer that GitLab got, of the past 7 days: an HTTP
	// status or "internal error"; "" = none, or not known.
	Status string
}

// hookRecord is an element of GET /projects/:id/hooks (docs.gitlab.com, "Project
// webhooks API").
type hookRecord struct {
	ID            int64      `json:"id"`
	URL           string     `json:"url"`
	Push          bool       `json:"push_events"`
	Tag           bool       `json:"tag_push_events"`
	Merge         bool       `json:"merge_requests_events"`
	Job           bool       `json:"job_events"`
	Pipeline      bool       `json:"pipeline_events"`
	Release       bool       `json:"releases_events"`
	VerifiesTLS   bool       `json:"enable_ssl_verification"`
	Alert         string     `json:"alert_status"`
	DisabledUntil *time.Time `json:"disabled_until"`
}

// pages asks for the most elements that GitLab puts on a page.
type pages struct {
	PerPage int `url:"per_page"`
}

// Hooks lists the webhooks of a project, for doctor. wanted says of which the
// last answer is to be read too. Errors: as for readings; CodeForbidden says
// which right is missing.
func (in *Instance) Hooks(ctx context.Context, project int64, wanted func(url string) bool) ([]Hook, error) {
	records, _, err := get[[]hookRecord](ctx, in, call{
		what: fmt.Sprintf("list the webhooks of project %d", project), client: in.user, method: http.MethodGet,
		path: fmt.Sprintf("projects/%d/hooks", project), query: pages{100},
		hint403: "the user of gitlab.token needs the Maintainer role in the project, and the token scope read_api; or look at Settings > Webhooks yourself",
		hint404: "check project_id, and that the user of gitlab.token has the Maintainer role in the project",
	})
	if err != nil {
		return nil, err
	}
	var list []Hook
	for _, r := range records {
		h := r.hook()
		if wanted(h.URL) {
			h.Status = in.lastAnswer(ctx, project, h.ID)
		}
		list = append(list, h)
	}
	return list, nil
}

func (r hookRecord) hook() Hook {
	h := Hook{ID: r.ID, URL: r.URL, Alert: r.Alert, DisabledUntil: timeOf(r.DisabledUntil), VerifiesTLS: r.VerifiesTLS}
	for _, kind := range []struct {
		name string
		sent bool
	}{
		{"pipeline", r.Pipeline}, {"push", r.Push}, {"tag", r.Tag}, {"release", r.Release}, {"merge", r.Merge}, {"job", r.Job},
	} {
		if kind.sent {
			h.Events = append(h.Events, kind.name)
		}
	}
	return h
}

// lastAnswer reads GitLab's list of recent events of a hook (17.3 and later),
// and of that only the statuses: it repeats whole bodies. "" = not known.
func (in *Instance) lastAnswer(ctx context.Context, project, hook int64) string {
	events, _, err := get[[]struct {
		ID     int64  `json:"id"`
		Status string `json:"response_status"`
	}](ctx, in, call{
		what: fmt.Sprintf("list the recent events of webhook %d", hook), client: in.user, method: http.MethodGet,
		path: fmt.Sprintf("projects/%d/hooks/%d/events", project, hook), query: pages{20},
	})
	if err != nil { // an older GitLab has no such list
		return ""
	}
	var newest int64
	status := ""
	for _, e := range events {
		if e.ID > newest {
			newest, status = e.ID, e.Status
		}
	}
	return status
}
