package gitlab_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// Cases T21 (pytorch/pytorch#140958) and T23: what cannot be asked is unknown.
func TestEveryFaultIsUnknownWithACodeAndSomethingToDo(t *testing.T) {
	for name, c := range map[string]struct {
		fault simgitlab.Fault
		code  fleet.Code
		says  []string
	}{
		"401":       {simgitlab.Fault{Code: 401}, fleet.CodeForbidden, []string{"401", "scope read_api", "gitlab.token"}},
		"403":       {simgitlab.Fault{Code: 403}, fleet.CodeForbidden, []string{"403", "No access granted", "Owner role"}},
		"404":       {simgitlab.Fault{Code: 404}, fleet.CodeNotFound, []string{"404", "runner.id 4711"}},
		"429":       {simgitlab.Fault{Code: 429, RetryAfter: 40}, fleet.CodeRateLimited, []string{"429", "40s"}},
		"429 bare":  {simgitlab.Fault{Code: 429}, fleet.CodeRateLimited, []string{"429", "5s"}},
		"500":       {simgitlab.Fault{Code: 500}, fleet.CodeUnavailable, []string{"500"}},
		"502":       {simgitlab.Fault{Code: 502}, fleet.CodeUnavailable, []string{"502"}},
		"HTML":      {simgitlab.Fault{Kind: simgitlab.FaultHTML}, fleet.CodeUnavailable, []string{"text/html", "login page"}},
		"redirect":  {simgitlab.Fault{Kind: simgitlab.FaultRedirect, Location: "https://elsewhere.example/x?token=t"}, fleet.CodeUnavailable, []string{"302", "https://elsewhere.example", "follows no redirect"}},
		"truncated": {simgitlab.Fault{Kind: simgitlab.FaultTruncated}, fleet.CodeUnavailable, []string{"cut off"}},
		"drop":      {simgitlab.Fault{Kind: simgitlab.FaultDrop}, fleet.CodeUnavailable, []string{"could not be asked", "gitlab.url"}},
		"hang":      {simgitlab.Fault{Kind: simgitlab.FaultHang}, fleet.CodeUnavailable, []string{"did not answer in time"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(_ *simgitlab.Config, g *gitlab.Config) {
				if name == "hang" {
					g.Timeout = 50 * time.Millisecond
				}
			})
			w.join("s_aaa")
			w.Inject(c.fault)
			_, _, err := w.entry.Managers(t.Context())
			if fleet.CodeOf(err) != c.code {
				t.Fatalf("%v: code %s, want %s", err, fleet.CodeOf(err), c.code)
			}
			mustSay(t, err.Error(), append(c.says, "runner 4711")...)

			r := w.read("s_aaa")
			if r.Busy() != fleet.BusyUnknown || r.Unknown == "" {
				t.Errorf("reading = %+v", r)
			}
			mustSay(t, r.Unknown)
		})
	}
}

func TestOneFailingPartMakesTheReadingUnknown(t *testing.T) {
	for _, route := range []string{"GET /runners/:id/managers", "GET /runners/:id/jobs"} {
		w := newWorld(t, nil)
		w.join("s_aaa")
		w.Inject(simgitlab.Fault{Code: 403, Routes: []string{route}})
		if r := w.read("s_aaa"); r.Busy() != fleet.BusyUnknown || r.Unknown == "" {
			t.Errorf("%s: %+v", route, r)
		}
	}
}

func TestAJobSeenIsShownThoughTheRestIsUnknown(t *testing.T) {
	w := newWorld(t, nil)
	w.start("s_aaa", simgitlab.JobSpec{})
	w.Inject(simgitlab.Fault{Code: 403, Routes: []string{"GET /runners/:id/managers"}})
	if r := w.read("s_aaa"); r.Busy() != fleet.BusyUnknown || len(r.Running) != 1 {
		t.Errorf("reading = %+v", r)
	}
}

func TestATokenWithoutScopeOrRightIsToldApart(t *testing.T) {
	for _, c := range []struct {
		user simgitlab.User
		says []string
	}{
		{simgitlab.User{Scopes: []string{"read_user"}, Role: simgitlab.RoleOwner}, []string{"lacks the scope read_api"}},
		{simgitlab.User{Scopes: []string{"read_api"}, Role: simgitlab.RoleMaintainer}, []string{"Owner role"}},
		{simgitlab.User{Scopes: []string{"read_api"}, ExpiresAt: time.Now().Add(-time.Hour)}, []string{"revoked or expired"}},
	} {
		c.user.Token = simgitlab.DefaultUserToken
		w := newWorld(t, func(s *simgitlab.Config, _ *gitlab.Config) { s.Users = []simgitlab.User{c.user} })
		w.join("s_aaa")
		r := w.read("s_aaa")
		if r.Busy() != fleet.BusyUnknown {
			t.Errorf("%+v: %s", c.user, r.Busy())
		}
		mustSay(t, r.Unknown, c.says...)
	}
}

func TestAShortOutageIsBridged(t *testing.T) {
	w := newWorld(t, nil)
	w.join("s_aaa")
	w.Inject(simgitlab.Fault{Code: 502, Count: 1})
	if _, _, err := w.entry.Managers(t.Context()); err != nil {
		t.Errorf("after one 502: %v", err)
	}
	if got := w.codes(); !slices.Equal(got, []string{"GET /runners/:id/managers 502", "GET /runners/:id/managers 200"}) {
		t.Errorf("observed %q", got)
	}
}

// Case T71 (github-aws-runners#3199): Retry-After is honoured, by everybody.
func TestAfter429GitLabIsLeftAloneUntilItMayBeAskedAgain(t *testing.T) {
	now := time.Now()
	w := newWorld(t, func(_ *simgitlab.Config, g *gitlab.Config) { g.Now = func() time.Time { return now } })
	w.join("s_aaa")
	w.Inject(simgitlab.Fault{Code: 429, RetryAfter: 30, Count: 1})
	for i := range 3 {
		if _, _, err := w.entry.Managers(t.Context()); fleet.CodeOf(err) != fleet.CodeRateLimited {
			t.Fatalf("ask %d: %v", i, err)
		}
	}
	if err := w.in.Registrar(simgitlab.DefaultRunnerToken).TokenAlive(t.Context()); fleet.CodeOf(err) != fleet.CodeRateLimited {
		t.Errorf("the registrar shares the pause: %v", err)
	}
	if n := w.Counts()["GET /runners/:id/managers"]; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	now = now.Add(31 * time.Second)
	if _, _, err := w.entry.Managers(t.Context()); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

func TestAnAskerWhoGivesUpGetsItsReason(t *testing.T) {
	w := newWorld(t, nil)
	w.Inject(simgitlab.Fault{Kind: simgitlab.FaultHang})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := w.entry.Managers(ctx); fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Errorf("deadline: %v", err)
	}
	canceled, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := w.entry.Managers(canceled); fleet.CodeOf(err) != fleet.CodeCanceled {
		t.Errorf("cancel: %v", err)
	}
}

func TestAnInstanceThatIsNotThereIsUnavailable(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	in, err := gitlab.New(gitlab.Config{URL: "http://" + addr, Token: "t0ken", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = in.Entry(1).Managers(t.Context())
	if fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Fatalf("err = %v", err)
	}
	mustSay(t, err.Error(), addr, "gitlab.url")
}

func TestAnswersThatAreNotWhatWasAskedAreUnknown(t *testing.T) {
	for name, body := range map[string]string{
		"null": `null`, "object": `{"message":"ok"}`, "junk after it": `[] <html>`,
		"element without id": `[{"system_id":"s_aaa"}]`, "nothing": ``, "number": `7`,
		"other status": `[{"id":1,"status":"success","system_id":"s_aaa"}]`,
	} {
		hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		}))
		in, err := gitlab.New(gitlab.Config{URL: hs.URL, Token: "t0ken", Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		r := in.Entry(1).Read(t.Context(), about("s_aaa"), time.Now())
		if r.Busy() != fleet.BusyUnknown || r.Unknown == "" {
			t.Errorf("%s: %+v", name, r)
		}
		hs.Close()
	}
}

func TestATokenThatGitLabRepeatsIsNotShown(t *testing.T) {
	const secret = "glpat-very-secret" //nolint:gosec // opens nothing
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"403 for ` + secret + `\u001b[31m"}`))
	}))
	defer hs.Close()
	in, err := gitlab.New(gitlab.Config{URL: hs.URL, Token: secret, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		func() error { _, err := in.Entry(1).Runner(t.Context()); return err }(),
		in.Registrar(secret).RemoveManager(t.Context(), "s_aaa"),
		in.Registrar(secret).TokenAlive(t.Context()),
	} {
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q", err)
		}
	}
}

// cases.md T17: a proxy that does not know the route says 404, too.
func TestANotFoundListOfJobsIsNoEmptyList(t *testing.T) {
	w := newWorld(t, nil)
	w.join("s_aaa")
	if r := w.read("s_aaa"); r.Busy() != fleet.BusyIdle {
		t.Fatalf("reading = %+v", r)
	}
	w = newWorld(t, nil)
	w.join("s_aaa")
	w.Inject(simgitlab.Fault{Code: 404, Routes: []string{"GET /runners/:id/jobs"}})
	if r := w.read("s_aaa"); r.Busy() != fleet.BusyUnknown || r.Unknown == "" {
		t.Errorf("reading = %+v", r)
	}
}
