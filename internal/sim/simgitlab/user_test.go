package simgitlab_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// systemID adds the parameter that client-go's options lack.
func systemID(id string) gitlab.RequestOptionFunc {
	return func(r *retryablehttp.Request) error {
		q := r.URL.Query()
		q.Set("system_id", id)
		r.URL.RawQuery = q.Encode()
		return nil
	}
}

func TestClientGoReadsRunnerManagersAndJobs(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	p := w.take("s_aaa", simgitlab.JobSpec{Name: "deploy", Project: "acme/shop"})
	w.request("s_bbb")
	c := w.client(simgitlab.DefaultUserToken)

	d, _, err := c.Runners.GetRunnerDetails(simgitlab.DefaultRunnerID)
	if err != nil || d.RunnerType != "group_type" || d.Paused || !d.Online {
		t.Fatalf("details = %+v, %v", d, err)
	}
	ms, _, err := c.Runners.ListRunnerManagers(simgitlab.DefaultRunnerID)
	if err != nil || len(ms) != 2 || ms[0].SystemID != "s_aaa" || ms[0].Status != "online" || ms[0].Version != "19.4.0" {
		t.Fatalf("managers = %+v, %v", ms, err)
	}
	jobs, _, err := c.Runners.ListRunnerJobs(simgitlab.DefaultRunnerID, nil, systemID("s_aaa"))
	if err != nil || len(jobs) != 1 || jobs[0].ID != p.ID || jobs[0].Name != "deploy" || jobs[0].Status != "running" {
		t.Fatalf("jobs = %+v, %v", jobs, err)
	}
	if none, _, err := c.Runners.ListRunnerJobs(simgitlab.DefaultRunnerID, nil, systemID("s_nowhere")); err != nil || len(none) != 0 {
		t.Fatalf("unknown system_id = %+v, %v; GitLab answers an empty list", none, err)
	}
	j, _, err := c.Jobs.GetJob("acme/shop", p.ID)
	if err != nil || j.Runner.ID != simgitlab.DefaultRunnerID || j.StartedAt == nil {
		t.Fatalf("job by path = %+v, %v", j, err)
	}
	if code, _, body := w.call(t.Context(), http.MethodGet, j.WebURL[len(w.url):], nil); code != 200 || len(body) == 0 {
		t.Errorf("web_url %s = %d", j.WebURL, code)
	}
}

func TestManagersSayWhetherTheyExecuteJobs(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	p := w.take("s_aaa", simgitlab.JobSpec{})
	status := func() string {
		_, _, body := w.call(t.Context(), http.MethodGet, "/api/v4/runners/4711/managers", nil, "Private-Token", simgitlab.DefaultUserToken)
		var ms []map[string]any
		if err := json.Unmarshal(body, &ms); err != nil || len(ms) != 1 {
			t.Fatalf("managers = %s, %v", body, err)
		}
		s, _ := ms[0]["job_execution_status"].(string)
		return s
	}
	if got := status(); got != "active" {
		t.Errorf("with a job: %q", got)
	}
	w.update(p, "success", "")
	if got := status(); got != "idle" {
		t.Errorf("after it: %q", got)
	}
	w.Switch(func(s *simgitlab.Switches) { s.GhostBusy = []string{"s_aaa"} })
	if got := status(); got != "active" {
		t.Errorf("ghost: %q", got)
	}
	w.Switch(func(s *simgitlab.Switches) { s.OmitJobExecutionStatus = true })
	if got := status(); got != "" {
		t.Errorf("older server: %q", got)
	}
}

func TestPagesAreFollowedByClientGo(t *testing.T) {
	for _, keyset := range []bool{false, true} {
		w := newWorld(t, simgitlab.Config{})
		w.Switch(func(s *simgitlab.Switches) { s.MaxPerPage = 2 })
		var want []int64
		for range 5 {
			want = append(want, w.take("s_aaa", simgitlab.JobSpec{}).ID)
		}
		c := w.client(simgitlab.DefaultUserToken)
		opt := &gitlab.ListRunnerJobsOptions{}
		if keyset {
			opt.Pagination = "keyset"
		}
		got, err := gitlab.ScanAndCollect(func(p gitlab.PaginationOptionFunc) ([]*gitlab.Job, *gitlab.Response, error) {
			jobs, resp, err := c.Runners.ListRunnerJobs(simgitlab.DefaultRunnerID, opt, systemID("s_aaa"), p)
			if err == nil && resp.Header.Get("X-Total") != "" {
				t.Error("X-Total with system_id: GitLab leaves it out")
			}
			return jobs, resp, err
		})
		if err != nil {
			t.Fatal(err)
		}
		var ids []int64
		for _, j := range got {
			ids = append(ids, j.ID)
		}
		slices.Sort(ids)
		if !slices.Equal(ids, want) {
			t.Errorf("keyset %v: got %v, want %v", keyset, ids, want)
		}
	}
}

// Case T23 (gitlab-org/gitlab!268997): the list hides projects silently.
func TestTheJobListHidesProjectsTheCallerCannotSee(t *testing.T) {
	w := newWorld(t, simgitlab.Config{Users: []simgitlab.User{
		{Name: "half", Token: "glpat-half", Scopes: []string{"read_api"}, Role: simgitlab.RoleOwner, Projects: []string{"acme/seen"}},
		{Name: "m", Token: "glpat-m", Scopes: []string{"read_api"}, Role: simgitlab.RoleMaintainer},
		{Name: "s", Token: "glpat-s", Scopes: []string{"read_user"}, Role: simgitlab.RoleOwner},
	}})
	w.take("s_aaa", simgitlab.JobSpec{Project: "acme/hidden"})
	jobs, _, err := w.client("glpat-half").Runners.ListRunnerJobs(simgitlab.DefaultRunnerID, nil)
	if err != nil || len(jobs) != 0 {
		t.Errorf("jobs = %v, %v", jobs, err)
	}
	for token, want := range map[string]int{"glpat-m": 403, "glpat-s": 403, "glpat-unknown": 401} {
		_, _, err := w.client(token).Runners.ListRunnerJobs(simgitlab.DefaultRunnerID, nil)
		var e *gitlab.ErrorResponse
		if !errors.As(err, &e) || e.StatusCode != want {
			t.Errorf("%s: %v, want %d", token, err, want)
		}
	}
}

func TestAStaleReadShowsTheStateBeforeTheChange(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	w.request("s_aaa")
	w.Switch(func(s *simgitlab.Switches) { s.StaleReads = 2 })
	p := w.take("s_aaa", simgitlab.JobSpec{})
	c := w.client(simgitlab.DefaultUserToken)
	for i, want := range []int{0, 0, 1} {
		jobs, _, err := c.Runners.ListRunnerJobs(simgitlab.DefaultRunnerID, nil, systemID("s_aaa"))
		if err != nil || len(jobs) != want {
			t.Fatalf("read %d = %d jobs, %v; want %d (job %d)", i, len(jobs), err, want, p.ID)
		}
	}
}

func TestRetryMakesANewJobOnceAndOnlyOfAFinishedOne(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	p := w.take("s_aaa", simgitlab.JobSpec{})
	c := w.client(simgitlab.DefaultWriteToken)
	if _, _, err := c.Jobs.RetryJob(p.JobInfo.ProjectID, p.ID); err == nil {
		t.Error("a running job was retried")
	}
	w.update(p, "failed", "script_failure")
	j, _, err := c.Jobs.RetryJob(p.JobInfo.ProjectID, p.ID)
	if err != nil || j.ID == p.ID || j.Status != "pending" {
		t.Fatalf("retry = %+v, %v", j, err)
	}
	if _, _, err := c.Jobs.RetryJob(p.JobInfo.ProjectID, p.ID); err == nil {
		t.Error("retried twice")
	}
	if rec, _ := w.Job(j.ID); rec.RetryOf != p.ID {
		t.Errorf("record = %+v", rec)
	}
}

func TestClientGoReadsTokenVersionAndTrace(t *testing.T) {
	until := time.Date(2031, 2, 3, 0, 0, 0, 0, time.UTC)
	w := newWorld(t, simgitlab.Config{Users: []simgitlab.User{
		{Name: "r", Token: "glpat-r", Scopes: []string{"read_api"}, Role: simgitlab.RoleOwner, ExpiresAt: until},
	}})
	c := w.client("glpat-r")
	pat, _, err := c.PersonalAccessTokens.GetSinglePersonalAccessToken()
	if err != nil || !slices.Equal(pat.Scopes, []string{"read_api"}) || !time.Time(*pat.ExpiresAt).Equal(until) {
		t.Fatalf("self = %+v, %v", pat, err)
	}
	if m, _, err := c.Metadata.GetMetadata(); err != nil || m.Version == "" {
		t.Fatalf("metadata = %+v, %v", m, err)
	}
	p := w.take("s_aaa", simgitlab.JobSpec{})
	w.trace(p, "some output")
	rd, _, err := c.Jobs.GetTraceFile(p.JobInfo.ProjectID, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(rd); err != nil || !bytes.Equal(raw, []byte("some output")) {
		t.Fatalf("trace = %q, %v", raw, err)
	}
}

func TestTheControlAPIServesOtherProcesses(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	_, _, body := w.call(t.Context(), http.MethodPost, "/sim/jobs", simgitlab.JobSpec{Name: "far"})
	var made struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(body, &made); err != nil || made.ID == 0 {
		t.Fatalf("enqueue = %s, %v", body, err)
	}
	w.call(t.Context(), http.MethodPost, "/sim/faults", simgitlab.Fault{Kind: simgitlab.FaultStatus, Code: 502, Count: 1})
	if code, _, _ := w.poll(t.Context(), "s_aaa", ""); code != 502 {
		t.Errorf("with a fault: %d", code)
	}
	w.call(t.Context(), http.MethodPut, "/sim/switches", simgitlab.Switches{NoManagerLink: true})
	p := w.request("s_aaa")
	w.trace(p, "x")
	w.call(t.Context(), http.MethodPost, "/sim/gone", map[string]string{"system_id": "s_aaa"})
	_, _, body = w.call(t.Context(), http.MethodGet, "/sim/ledger", nil)
	var l simgitlab.Ledger
	if err := json.Unmarshal(body, &l); err != nil || l.Cut != 1 || l.Jobs[0].ManagerID != 0 {
		t.Fatalf("ledger = %s, %v", body, err)
	}
	_, _, body = w.call(t.Context(), http.MethodGet, "/sim/counts", nil)
	var counts map[string]int
	if err := json.Unmarshal(body, &counts); err != nil || counts["POST /jobs/request"] != 2 {
		t.Fatalf("counts = %s, %v", body, err)
	}
	if code, _, _ := w.call(t.Context(), http.MethodPost, "/sim/jobs", "no json"); code != 400 {
		t.Errorf("junk = %d, want 400", code)
	}
}
