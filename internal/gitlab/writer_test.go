package gitlab_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// write returns the jobs of the world's entry, with a token of the world.
func (w *world) write(token string) *gitlab.Jobs {
	w.t.Helper()
	writer, err := gitlab.NewWriter(gitlab.Config{URL: w.url, Token: token, Now: time.Now, Observe: w.observe, Timeout: 5 * time.Second, Rate: 10_000})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.entry.Jobs(writer)
}

// running is a job that a VM has taken, as readings name it.
func (w *world) running(systemID string, spec simgitlab.JobSpec) fleet.Job {
	w.t.Helper()
	w.start(systemID, spec)
	list := w.read(systemID).Running
	if len(list) != 1 {
		w.t.Fatalf("running: %v", list)
	}
	return list[0]
}

func jobsCalls(t *testing.T, w *world) error {
	t.Helper()
	o := newWorld(t, func(_ *simgitlab.Config, gc *gitlab.Config) { gc.Observe = w.observe })
	job, jobs := o.running("s_jobs", simgitlab.JobSpec{}), o.write(simgitlab.DefaultWriteToken)
	defer func() {
		for _, code := range o.codes() {
			w.observe(code[:strings.LastIndex(code, " ")], "200")
		}
	}()
	_, reading := jobs.Job(t.Context(), job)
	cancel := jobs.Cancel(t.Context(), job, false)
	_, retry := jobs.Retry(t.Context(), job)
	return errors.Join(reading, cancel, retry)
}

// What the client for readings can never do, whatever calls it, and the writer
// can: these two, and nothing else of all that GitLab's client knows.
func TestOnlyTheWriterCancelsAndRetriesAndItDoesNothingElse(t *testing.T) {
	base, err := url.Parse(root)
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	passed := map[string]bool{}
	for _, r := range gl.Routes() {
		for _, word := range []string{"7", "managers", "verify", "all"} {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
				for _, body := range []string{"", managerJSON, `{"force":true}`} {
					path := "/api/v4" + strings.ReplaceAll(r.String(), ":id", word)
					wire := &wire{}
					resp, err := gitlab.NewWriteGuard(base, wire).RoundTrip(request(t, method, path, body))
					if err == nil {
						_ = resp.Body.Close()
						passed[method+" "+path] = true
						sent = append(sent, wire.body...)
					}
				}
			}
		}
	}
	want := []string{
		"GET /api/v4/personal_access_tokens/self", "GET /api/v4/projects",
		"POST /api/v4/projects/7/jobs/7/cancel", "POST /api/v4/projects/7/jobs/7/retry",
	}
	var got []string
	for call := range passed {
		got = append(got, call)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("passed %v, want %v", got, want)
	}
	for _, body := range sent {
		if body != "" && body != `{"force":true}` && body != `{"force":false}` {
			t.Errorf("sent %s", body)
		}
	}
	for _, path := range []string{"cancel", "retry"} { // of the client for readings
		for _, body := range []string{"", `{"force":true}`} {
			if passes(t, request(t, "POST", "/api/v4/projects/7/jobs/7/"+path, body)) {
				t.Errorf("the client for readings can %s", path)
			}
		}
	}
}

func TestAJobIsReadWithItsPlaceInItsPipeline(t *testing.T) {
	w := newWorld(t, func(sc *simgitlab.Config, _ *gitlab.Config) { sc.BasePath = "/gitlab" })
	w.Switch(func(s *simgitlab.Switches) { s.MaxPerPage = 1 }) // all pages are read
	jobs := w.write(simgitlab.DefaultWriteToken)
	job := w.running("s_aaa", simgitlab.JobSpec{Name: "deploy", Pipeline: 5})
	other := w.running("s_bbb", simgitlab.JobSpec{Name: "lint", Pipeline: 5})
	g, err := jobs.Job(t.Context(), job)
	if err != nil || g.Status != "running" || g.SystemID != "s_aaa" || g.PipelineStatus != "running" || !g.StartedAt.Equal(job.StartedAt) || g.Newer != 0 || g.ServerTime.IsZero() {
		t.Fatalf("reading %+v, %v", g, err)
	}
	if err := errors.Join(jobs.Cancel(t.Context(), job, false), jobs.Cancel(t.Context(), other, false)); err != nil {
		t.Fatal(err)
	}
	again, err := jobs.Retry(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	g, err = jobs.Job(t.Context(), job)
	if err != nil || g.Status != "canceled" || g.Newer != again || !slices.Equal(g.Canceled, []int64{other.ID}) || g.FinishedAt.IsZero() {
		t.Errorf("reading %+v, %v; retried as %d", g, err, again)
	}
	if _, err := jobs.Retry(t.Context(), job); fleet.CodeOf(err) != fleet.CodeForbidden {
		t.Errorf("a second retry: %v", err)
	}
}

// A POST whose answer was lost may have had its effect.
func TestAPostIsNeverSentTwice(t *testing.T) {
	hits := 0
	hs := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		hits++
		rw.WriteHeader(http.StatusInternalServerError)
	}))
	defer hs.Close()
	writer, err := gitlab.NewWriter(gitlab.Config{URL: hs.URL, Token: "glpat-w", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	job := fleet.Job{ID: 9, ProjectID: 7}
	for i, post := range []func() error{
		func() error { return writer.Cancel(t.Context(), job, false) },
		func() error { return writer.Cancel(t.Context(), job, true) },
		func() error { _, err := writer.Retry(t.Context(), job); return err },
	} {
		if err := post(); fleet.CodeOf(err) != fleet.CodeUnavailable || hits != i+1 {
			t.Errorf("%d requests: %v", hits, err)
		}
	}
}

func TestAWriteTokenWithoutTheRightIsTold(t *testing.T) {
	w := newWorld(t, func(sc *simgitlab.Config, _ *gitlab.Config) {
		sc.Users = []simgitlab.User{
			{Name: "reader", Token: simgitlab.DefaultUserToken, Scopes: []string{"read_api"}, Role: simgitlab.RoleOwner},
			{Name: "guest", Token: "glpat-guest", Scopes: []string{"api"}, Role: simgitlab.RoleDeveloper, Reports: []string{"acme/app"}},
			{Name: "dev", Token: "glpat-dev", Scopes: []string{"api"}, Role: simgitlab.RoleDeveloper},
		}
	})
	job := w.running("s_aaa", simgitlab.JobSpec{})
	err := w.write("glpat-guest").Cancel(t.Context(), job, false)
	if fleet.CodeOf(err) != fleet.CodeForbidden {
		t.Fatal(err)
	}
	mustSay(t, err.Error()+fleet.HintOf(err), "Developer", "Maintainer")
	err = w.write("glpat-wrong").Cancel(t.Context(), job, false)
	mustSay(t, err.Error()+fleet.HintOf(err), "401", "gitlab.write_token", "scope api")
	err = w.write(simgitlab.DefaultUserToken).Cancel(t.Context(), job, false)
	mustSay(t, err.Error()+fleet.HintOf(err), "gitlab.write_token", "lacks the scope api")
	info, err := w.write(simgitlab.DefaultUserToken).Token(t.Context())
	if err != nil || info.CanWrite() || !info.CanRead() {
		t.Errorf("%+v, %v", info, err)
	}
}
