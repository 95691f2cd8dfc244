package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Entry is one runner entry seen with the user token: an engine.GitLab.
type Entry struct {
	in       *Instance
	id       int64
	ofVM     bool // one VM's own: its id is read on the host
	managers flights[managerList]
	jobs     flights[[]fleet.Job]
	runner   flights[runnerDetails]
}

var _ engine.GitLab = (*Entry)(nil)

// Entry returns the runner entry with that id; nothing is sent.
func (in *Instance) Entry(runnerID int64) *Entry {
	now, fresh := in.cfg.Now, in.cfg.Fresh
	return &Entry{
		in: in, id: runnerID,
		managers: flights[managerList]{now: now, fresh: fresh},
		jobs:     flights[[]fleet.Job]{now: now, fresh: fresh},
		runner:   flights[runnerDetails]{now: now, fresh: fresh},
	}
}

// call is a GET about this entry.
func (e *Entry) call(what, suffix string) call {
	hint404 := fmt.Sprintf("is runner.id %d right, and may the token see it at %s?", e.id, e.in.base.Host)
	if e.ofVM {
		hint404 = fmt.Sprintf("the VM's config.toml names entry %d: is it one of %s, and may the token see it?", e.id, e.in.base.Host)
	}
	return call{
		what:   what + " runner " + strconv.FormatInt(e.id, 10),
		client: e.in.user, method: http.MethodGet, path: fmt.Sprintf("runners/%d%s", e.id, suffix),
		hint403: "the token's user needs the Owner role on the group that owns the runner (Maintainer on the project of a project runner, an administrator for an instance runner)",
		hint404: hint404,
	}
}

// runnerDetails is GET /runners/:id, as far as it is used.
type runnerDetails struct {
	ID                 int64           `json:"id"`
	Description        string          `json:"description"`
	RunnerType         string          `json:"runner_type"`
	Paused             bool            `json:"paused"`
	Status             string          `json:"status"`
	CreatedAt          *time.Time      `json:"created_at"`
	JobExecutionStatus fleet.Execution `json:"job_execution_status"`
	// Projects are those of a project runner in which the caller has any role.
	Projects []struct {
		ID   int64  `json:"id"`
		Path string `json:"path_with_namespace"`
	} `json:"projects"`
}

// Runner implements engine.GitLab.
func (e *Entry) Runner(ctx context.Context) (engine.RunnerInfo, error) {
	d, err := e.details(ctx, e.in.cfg.Now())
	if err != nil {
		return engine.RunnerInfo{}, err
	}
	return engine.RunnerInfo{
		ID: d.ID, Description: d.Description, Type: d.RunnerType, Paused: d.Paused, Status: d.Status, CreatedAt: timeOf(d.CreatedAt),
	}, nil
}

func (e *Entry) details(ctx context.Context, after time.Time) (runnerDetails, error) {
	d, _, err := e.runner.get(ctx, "", after, func(ctx context.Context) (runnerDetails, error) {
		c := e.call("describe", "")
		d, a, err := get[runnerDetails](ctx, e.in, c)
		if err == nil && d.ID != e.id {
			err = e.in.badAnswer(c, a.Response)
		}
		return d, e.in.only404(c, a.Response, err)
	})
	return d, err
}
