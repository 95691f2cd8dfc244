package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
)

// GitLab is the world's GitLab seen from behind: queue jobs, read the ledger, break it.
type GitLab struct{ http *http.Client }

func newGitLab(w *machines.World) *GitLab { return &GitLab{client(w)} }

// Attach speaks to the GitLab of a world that stands.
func Attach(w *machines.World) *GitLab { return newGitLab(w) }

func (g *GitLab) awaitUp(ctx context.Context) error {
	return Await(ctx, 10*time.Second, "the world's GitLab to answer", func(ctx context.Context) (bool, error) {
		_, err := g.Ledger(ctx)
		return err == nil, nil
	})
}

// Enqueue puts a job in the queue and yields its id.
func (g *GitLab) Enqueue(ctx context.Context, spec simgitlab.JobSpec) (int64, error) {
	var made struct {
		ID int64 `json:"id"`
	}
	err := g.call(ctx, http.MethodPost, "/sim/jobs", spec, &made)
	return made.ID, err
}

// Job reads one job's record.
func (g *GitLab) Job(ctx context.Context, id int64) (simgitlab.JobRecord, error) {
	var record simgitlab.JobRecord
	err := g.call(ctx, http.MethodGet, "/sim/jobs/"+strconv.FormatInt(id, 10), nil, &record)
	return record, err
}

// Trace reads what a job has said so far.
func (g *GitLab) Trace(ctx context.Context, j simgitlab.JobRecord) (string, error) {
	var text string
	err := g.call(ctx, http.MethodGet, fmt.Sprintf("/api/v4/projects/%d/jobs/%d/trace", j.ProjectID, j.ID), nil, &text)
	return text, err
}

// Ledger reads GitLab's own account.
func (g *GitLab) Ledger(ctx context.Context) (simgitlab.Ledger, error) {
	var ledger simgitlab.Ledger
	err := g.call(ctx, http.MethodGet, "/sim/ledger", nil, &ledger)
	return ledger, err
}

// Inject adds a fault.
func (g *GitLab) Inject(ctx context.Context, f simgitlab.Fault) error {
	return g.call(ctx, http.MethodPost, "/sim/faults", f, nil)
}

// ClearFaults ends all faults.
func (g *GitLab) ClearFaults(ctx context.Context) error {
	return g.call(ctx, http.MethodDelete, "/sim/faults", nil, nil)
}

// Switch replaces the switches.
func (g *GitLab) Switch(ctx context.Context, s simgitlab.Switches) error {
	return g.call(ctx, http.MethodPut, "/sim/switches", s, nil)
}

// Requests lists the calls after a sequence number.
func (g *GitLab) Requests(ctx context.Context, after int64) ([]simgitlab.Request, error) {
	var requests []simgitlab.Request
	err := g.call(ctx, http.MethodGet, "/sim/requests?after="+strconv.FormatInt(after, 10), nil, &requests)
	return requests, err
}

// Gone tells the ledger that the VM of a system_id was destroyed.
func (g *GitLab) Gone(ctx context.Context, systemID string) error {
	return g.call(ctx, http.MethodPost, "/sim/gone", map[string]string{"system_id": systemID}, nil)
}

// Manager is one runner manager as the API lists it.
type Manager struct {
	ID          int64     `json:"id"`
	SystemID    string    `json:"system_id"`
	Status      string    `json:"status"`
	Execution   string    `json:"job_execution_status"`
	ContactedAt time.Time `json:"contacted_at"`
}

// Managers lists the runner's managers, as a user sees them.
func (g *GitLab) Managers(ctx context.Context) ([]Manager, error) {
	var managers []Manager
	path := fmt.Sprintf("/api/v4/runners/%d/managers", simgitlab.DefaultRunnerID)
	err := g.call(ctx, http.MethodGet, path, nil, &managers)
	return managers, err
}

// AwaitManagers waits until so many runners have joined.
func (g *GitLab) AwaitManagers(ctx context.Context, n int) error {
	return Await(ctx, 30*time.Second, fmt.Sprintf("%d runners to join", n), func(ctx context.Context) (bool, error) {
		managers, err := g.Managers(ctx)
		return len(managers) >= n, err
	})
}

// call decodes the answer into what it gets, from JSON but for a *string.
func (g *GitLab) call(ctx context.Context, method, path string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, GitLabURL+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	req.Header.Set("Private-Token", simgitlab.DefaultUserToken)
	req.Header.Set("User-Agent", "e2e")
	resp, err := g.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	switch into := into.(type) {
	case nil:
		return nil
	case *string:
		text, err := io.ReadAll(resp.Body)
		*into = string(text)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// Await asks until the answer is yes, an error, or the limit has passed; what says what
// was waited for.
func Await(ctx context.Context, limit time.Duration, what string, ask func(ctx context.Context) (bool, error)) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, err := ask(ctx)
		if err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", time.Since(began).Round(time.Millisecond), what, ctx.Err())
		case <-tick.C:
		}
	}
}
