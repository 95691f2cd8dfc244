package gitlab

import (
	"context"
	"fmt"
	"net/http"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Writer speaks with the write token: it can cancel a job and retry one, and
// nothing else that changes anything. It shares no client with an Instance, and
// an Instance can make none of its calls.
type Writer struct{ in *Instance }

// NewWriter returns the writer of cfg, whose Token is the write token; nothing
// is sent. Errors: CodeInvalid.
func NewWriter(cfg Config) (*Writer, error) {
	in, err := newInstance(cfg, writeRules, "gitlab.write_token", "api")
	if err != nil {
		return nil, err
	}
	return &Writer{in}, nil
}

// post is a call about one job.
func (w *Writer) post(what, verb string, job fleet.Job) call {
	return call{
		what: what + " " + job.String(), client: w.in.user, method: http.MethodPost,
		path:    fmt.Sprintf("projects/%d/jobs/%d/%s", job.ProjectID, job.ID, verb),
		hint403: "the write token's user needs the Developer role in the job's project, and the right to run jobs on its branch; Maintainer to force a cancel",
		hint404: "the job is gone, or the write token's user does not see its project",
	}
}

// Cancel implements engine.Jobs.
func (w *Writer) Cancel(ctx context.Context, job fleet.Job, force bool) error {
	if job.ProjectID == 0 || job.ID == 0 {
		return fleet.Errorf(fleet.CodeInvalid, "%s: its project is not known, so it cannot be canceled", job)
	}
	c := w.post("cancel", "cancel", job)
	if force {
		c.body = cancelCall{Force: true}
	}
	_, _, err := get[jobState](ctx, w.in, c)
	return err
}

// Retry implements engine.Jobs. The client repeats no POST by itself.
func (w *Writer) Retry(ctx context.Context, job fleet.Job) (int64, error) {
	if job.ProjectID == 0 || job.ID == 0 {
		return 0, fleet.Errorf(fleet.CodeInvalid, "%s: its project is not known, so it cannot be retried", job)
	}
	c := w.post("retry", "retry", job)
	again, a, err := get[jobState](ctx, w.in, c)
	if err == nil && (again.ID == 0 || again.ID == job.ID) {
		err = w.in.badAnswer(c, a.Response)
	}
	return again.ID, err
}

// Token describes the write token, for doctor. Errors: as for readings.
func (w *Writer) Token(ctx context.Context) (TokenInfo, error) { return w.in.Token(ctx) }

// CanWrite says whether the scopes let the token cancel and retry.
func (t TokenInfo) CanWrite() bool { return t.has("api") }
