package gitlab_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// patch writes a job's trace as its runner would.
func (w *world) patch(p simgitlab.JobPayload, text string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPatch,
		fmt.Sprintf("%s/api/v4/jobs/%d/trace", w.url, p.ID), strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Job-Token", p.Token)
	req.Header.Set("Content-Range", "0-"+strconv.Itoa(len(text)-1))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		w.t.Fatalf("trace = %d", resp.StatusCode)
	}
}

// Case T51 (cattle-ops/terraform-aws-gitlab-runner#1062).
func TestRemovingAManagerKeepsTheTokenOfTheOthers(t *testing.T) {
	w := newWorld(t, func(_ *simgitlab.Config, g *gitlab.Config) { g.Token = "" })
	w.join("s_aaa")
	w.join("s_bbb")
	reg := w.in.Registrar(simgitlab.DefaultRunnerToken)
	for range 2 { // the second time it is gone already
		if err := reg.RemoveManager(t.Context(), "s_aaa"); err != nil {
			t.Fatal(err)
		}
	}
	if err := reg.TokenAlive(t.Context()); err != nil {
		t.Errorf("alive: %v", err)
	}
	w.join("s_bbb")
	if d := w.Ledger().Damage; len(d) != 0 {
		t.Errorf("damage = %+v", d)
	}
	for _, r := range w.Requests(0) {
		if strings.Contains(r.Query+r.Path, simgitlab.DefaultRunnerToken) {
			t.Errorf("%s has the token in its URL", r.Route)
		}
	}
	if err := reg.RemoveManager(t.Context(), ""); fleet.CodeOf(err) != fleet.CodeInvalid {
		t.Errorf("without a system_id: %v", err)
	}
}

func TestADeadTokenIsToldFromAnUnknownOne(t *testing.T) {
	w := newWorld(t, nil)
	alive := w.in.Registrar(simgitlab.DefaultRunnerToken)
	dead := w.in.Registrar("glrt-no-such-token")
	if err := dead.TokenAlive(t.Context()); fleet.CodeOf(err) != fleet.CodeForbidden {
		t.Errorf("dead: %v", err)
	} else {
		mustSay(t, err.Error(), "see that runner.token is the token in the VMs' config.toml")
	}
	if err := dead.RemoveManager(t.Context(), "s_aaa"); fleet.CodeOf(err) != fleet.CodeForbidden {
		t.Errorf("dead: %v", err)
	}
	w.Switch(func(s *simgitlab.Switches) { s.NoRouter = true })
	if err := alive.TokenAlive(t.Context()); err != nil {
		t.Errorf("501 is alive: %v", err)
	}
	for _, code := range []int{404, 500} {
		id := w.Inject(simgitlab.Fault{Code: code})
		if err := alive.TokenAlive(t.Context()); err == nil || fleet.CodeOf(err) == fleet.CodeForbidden {
			t.Errorf("%d must be unknown: %v", code, err)
		}
		w.ClearFault(id)
	}
}

func TestSomebodyElses404IsNoRemoval(t *testing.T) {
	hs := httptest.NewServer(http.NotFoundHandler())
	defer hs.Close()
	in, err := gitlab.New(gitlab.Config{URL: hs.URL, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Registrar("glrt-x").RemoveManager(t.Context(), "s_aaa"); fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Errorf("err = %v", err)
	}
}

func TestTheTokenAndTheVersionCanBeChecked(t *testing.T) {
	until := time.Date(2031, 2, 3, 0, 0, 0, 0, time.UTC)
	w := newWorld(t, func(s *simgitlab.Config, _ *gitlab.Config) {
		s.Users = []simgitlab.User{{Name: "r", Token: simgitlab.DefaultUserToken, Scopes: []string{"read_api"}, Role: simgitlab.RoleOwner, ExpiresAt: until}}
		s.Version = "19.9.1"
	})
	tok, err := w.in.Token(t.Context())
	if err != nil || tok.Name != "r" || !tok.CanRead() || !tok.ExpiresAt.Equal(until) {
		t.Errorf("token = %+v, %v", tok, err)
	}
	if v, err := w.in.Version(t.Context()); err != nil || v != "19.9.1" {
		t.Errorf("version = %q, %v", v, err)
	}
	if (gitlab.TokenInfo{Scopes: []string{"read_user"}}).CanRead() {
		t.Error("read_user cannot read runners")
	}
}

func TestAnExpiryOfTheRunnerTokenIsSeen(t *testing.T) {
	until := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, base := range []string{"", "/gitlab"} {
		w := newWorld(t, func(s *simgitlab.Config, _ *gitlab.Config) {
			s.BasePath = base
			s.Runners = []simgitlab.RunnerSpec{
				{ID: simgitlab.DefaultRunnerID, Token: "glrt-1", TokenExpiresAt: until},
				{ID: 2, Token: "glrt-2"},
			}
		})
		if got, err := w.entry.TokenExpiry(t.Context()); err != nil || !got.Equal(until) {
			t.Errorf("with expiry = %s, %v", got, err)
		}
		if got, err := w.in.Entry(2).TokenExpiry(t.Context()); err != nil || !got.IsZero() {
			t.Errorf("without = %s, %v", got, err)
		}
		if _, err := w.in.Entry(3).TokenExpiry(t.Context()); fleet.CodeOf(err) != fleet.CodeNotFound {
			t.Errorf("no such runner: %v", err)
		}
	}
}

// A permission that nothing needs is one too many.
func TestEveryAllowedCallIsOneThatIsMade(t *testing.T) {
	w := newWorld(t, nil)
	w.Switch(func(s *simgitlab.Switches) { s.NoManagerLink = true })
	w.start("s_aaa", simgitlab.JobSpec{})
	r := w.read("s_aaa")
	if len(r.Unclaimed) != 1 {
		t.Fatalf("reading = %+v", r)
	}
	reg := w.in.Registrar(simgitlab.DefaultRunnerToken)
	for name, call := range map[string]func() error{
		"place": func() error {
			_, err := w.entry.Place(t.Context(), r.Unclaimed[0].ProjectID, r.Unclaimed[0].ID)
			return err
		},
		"trace":   func() error { _, err := w.entry.TraceEmpty(t.Context(), r.Unclaimed[0]); return err },
		"expiry":  func() error { _, err := w.entry.TokenExpiry(t.Context()); return err },
		"token":   func() error { _, err := w.in.Token(t.Context()); return err },
		"version": func() error { _, err := w.in.Version(t.Context()); return err },
		"alive":   func() error { return reg.TokenAlive(t.Context()) },
		"entry": func() error {
			o := newOwnWorld(t)
			_, err := o.entries.RemoveEntry(t.Context(), o.claim)
			w.observed = append(w.observed, o.codes()...)
			return err
		},
		"remove": func() error { return reg.RemoveManager(t.Context(), "s_aaa") },
		"roles": func() error {
			_, err := projectWorld(t, simgitlab.User{Scopes: []string{"read_api"}, Role: simgitlab.RoleOwner}, w.observe).entry.UnseenProjects(t.Context())
			return err
		},
		"jobs": func() error { return jobsCalls(t, w) },
		"webhooks": func() error {
			_, err := hooked(t, http.StatusOK, w.observe).Hooks(t.Context(), 42, ours)
			return err
		},
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	seen := map[string]bool{"other": true}
	for _, o := range w.codes() {
		seen[o[:strings.LastIndex(o, " ")]] = true
	}
	for _, route := range gitlab.Routes() {
		if !seen[route] {
			t.Errorf("%s is allowed and never called", route)
		}
	}
	if len(seen) != len(gitlab.Routes()) {
		t.Errorf("observed %v, listed %v", seen, gitlab.Routes())
	}
}

func TestABadAddressIsRefusedWithoutShowingIt(t *testing.T) {
	for _, u := range []string{"", "gitlab.com", "ftp://x", "https://user:s3cret@gitlab.com", "https://gitlab.com?private_token=s3cret", "https://h/a%2Fb"} {
		_, err := gitlab.New(gitlab.Config{URL: u, Now: time.Now})
		if fleet.CodeOf(err) != fleet.CodeInvalid || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", u, err)
		}
	}
	for _, u := range []string{"https://gitlab.com/", "https://gitlab.com/api/v4/", "http://127.0.0.1:8080/gitlab"} {
		if _, err := gitlab.New(gitlab.Config{URL: u, Now: time.Now}); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}
