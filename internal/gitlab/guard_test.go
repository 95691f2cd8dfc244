package gitlab_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/gitlab"
)

// wire is what would have been sent.
type wire struct {
	sent []*http.Request
	body []string
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	w.sent = append(w.sent, req)
	w.body = append(w.body, string(body))
	rec := httptest.NewRecorder()
	rec.WriteHeader(http.StatusOK)
	resp := rec.Result()
	resp.Request = req
	return resp, nil
}

const root = "https://gitlab.example/gitlab"

func guard(t *testing.T) (*gitlab.Guard, *wire) {
	t.Helper()
	base, err := url.Parse(root)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	return gitlab.NewGuard(base, w, nil), w
}

// passes sends a request through the guard and says whether it got out. It
// fails the test if the refusal is of another kind or something was sent.
func passes(t *testing.T, req *http.Request) bool {
	t.Helper()
	g, w := guard(t)
	resp, err := g.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
		return len(w.sent) == 1
	}
	if _, ok := errors.AsType[*gitlab.RefusedError](err); !ok {
		t.Errorf("%s %s: %v is no refusal", req.Method, req.URL, err)
	}
	if len(w.sent) != 0 {
		t.Errorf("%s %s: refused, and sent all the same", req.Method, req.URL)
	}
	return false
}

func request(t *testing.T, method, path, body string) *http.Request {
	t.Helper()
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, root+path, rd)
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

const managerJSON = `{"token":"glrt-x","system_id":"s_aaa"}`

// The whole route table of the client, with every method, every parameter as a
// number and as each word that is special below /runners; with and without a
// body that would suit the one DELETE that is allowed.
func TestOfTheClientsWholeRouteTableOnlyTheseCallsPass(t *testing.T) {
	routes := gl.Routes()
	if len(routes) < 500 {
		t.Fatalf("the client's table has %d routes: this test sees too little", len(routes))
	}
	words := []string{"7", "managers", "verify", "self", "all", "router", "reset_authentication_token", "a%2Fb"}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"}
	passed := map[string]bool{}
	for _, r := range routes {
		for i, word := range words {
			if i > 0 && !strings.Contains(r.String(), ":id") {
				break
			}
			path := "/api/v4" + strings.ReplaceAll(r.String(), ":id", word)
			for _, method := range methods {
				for _, body := range []string{"", managerJSON} {
					if passes(t, request(t, method, path, body)) {
						passed[method+" "+path] = true
					}
				}
			}
		}
	}
	want := []string{
		"DELETE /api/v4/runners/managers", // as /runners/:id; only with the body that names one manager
		"GET /api/v4/metadata",
		"GET /api/v4/personal_access_tokens/self",
		"GET /api/v4/projects",
		"GET /api/v4/projects/7/hooks", // reads; who makes and changes them is a person
		"GET /api/v4/projects/7/jobs/7",
		"GET /api/v4/projects/7/jobs/7/trace",
		"GET /api/v4/projects/7/pipelines/7/jobs",
		"GET /api/v4/runners/7",
		"GET /api/v4/runners/7/jobs",
		"GET /api/v4/runners/7/managers",
		"GET /api/v4/user",
	}
	got := slices.Sorted(func(yield func(string) bool) {
		for call := range passed {
			if !yield(call) {
				return
			}
		}
	})
	if !slices.Equal(got, want) {
		t.Errorf("passed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatTheClientHasNoRouteForPassesOnlyAsListed(t *testing.T) {
	for _, c := range []struct {
		method, path, body string
		pass               bool
	}{
		{"GET", "/api/v4/runners/router/discovery", "", true},
		{"DELETE", "/api/v4/runners/managers", managerJSON, true},
		{"GET", "/api/v4/runners/7/jobs?system_id=s_a&status=running&per_page=100&page=2", "", true},
		{"", "/api/v4/runners/7", "", true}, // Go's way to say GET
		{"GET", "/api/v4/projects/42/hooks?per_page=100", "", true},
		{"GET", "/api/v4/projects/42/hooks/5/events?per_page=20", "", true},

		{"POST", "/api/v4/projects/42/hooks", "", false},
		{"POST", "/api/v4/projects/42/hooks/5/events/9/resend", "", false},
		{"POST", "/api/v4/projects/42/hooks/5/test/push_events", "", false},
		{"DELETE", "/api/v4/projects/42/hooks/5", "", false},

		{"DELETE", "/api/v4/runners/managers", "", false},
		{"DELETE", "/api/v4/runners/managers", `{"token":"glrt-x"}`, false},
		{"DELETE", "/api/v4/runners/managers", `{"token":"glrt-x","system_id":""}`, false},
		{"DELETE", "/api/v4/runners/managers?token=glrt-x&system_id=s_aaa", managerJSON, false},
		{"DELETE", "/api/v4/runners/managers?system_id=s_bbb", managerJSON, false},
		{"DELETE", "/api/v4/runners", managerJSON, false},
		{"DELETE", "/api/v4/runners/7", managerJSON, false},
		{"PUT", "/api/v4/runners/7", `{"paused":true}`, false},
		{"POST", "/api/v4/runners/7/reset_authentication_token", "", false},
		{"POST", "/api/v4/runners/reset_authentication_token", managerJSON, false},
		{"POST", "/api/v4/runners/verify", managerJSON, false},
		{"POST", "/api/v4/user/runners", `{}`, false},
		{"POST", "/api/v4/projects/7/jobs/7/retry", "", false},
		{"POST", "/api/v4/projects/7/jobs/7/cancel", "", false},
		{"get", "/api/v4/runners/7", "", false},
		{"delete", "/api/v4/runners/managers", managerJSON, false},
		{"GET", "/api/v4/runners/7", `{}`, false},
		{"GET", "/api/v4/runners/7/jobs?private_token=x", "", false},
		{"GET", "/api/v4/runners/7/jobs?status=running&status=failed", "", false},
		{"GET", "/api/v4/runners/7/jobs?status=running;_method=delete", "", false},
		{"GET", "/api/v4/runners/7?_method=DELETE", "", false},
	} {
		if got := passes(t, request(t, c.method, c.path, c.body)); got != c.pass {
			t.Errorf("%s %s %s: passes %v, want %v", c.method, c.path, c.body, got, c.pass)
		}
	}
}

func TestNoWayOfWritingAPathGetsAround(t *testing.T) {
	for _, path := range []string{
		"/api/v4//runners/7", "//api/v4/runners/7", "/api/v4/runners//7", "/api/v4/runners/7/", "/api/v4/runners/7//jobs",
		"/api/v4/./runners/7", "/api/v4/x/../runners/7", "/api/v4/runners/7/jobs/..", "/api/v4/runners/%2e%2e/runners",
		"/api/v4/runners/%37", "/api/v4/runners%2F7", "/api/v4/%72unners/7", "/api/v4/runners/7%2Fjobs", "/api/v4/runners/7%00",
		"/api/v4/runners/7;x", "/api/v4/Runners/7", "/API/v4/runners/7", "/api/v4/runners/-7", "/api/v4/runners/7.json",
		"/api/v4/runners/٧", "/api/v4/runners/77777777777777777777777", "/api/v3/runners/7", "/runners/7", "/api/v4", "/", "",
		"/api/v4/runners/managers/", "/../api/v4/runners/7", "/api/v4/projects/a%2Fb/jobs/7",
	} {
		for _, method := range []string{"GET", "DELETE"} {
			if passes(t, request(t, method, path, "")) {
				t.Errorf("%s %s passed", method, path)
			}
		}
	}
	outside := request(t, "GET", "", "")
	outside.URL.Path = "/api/v4/runners/7" // the host is right, the instance's path is missing
	if passes(t, outside) {
		t.Error("a path outside of the instance passed")
	}
}

func TestNoOtherTrickGetsAround(t *testing.T) {
	for name, bend := range map[string]func(*http.Request){
		"method override":      func(r *http.Request) { r.Header.Set("X-HTTP-Method-Override", "DELETE") },
		"method override, raw": func(r *http.Request) { r.Header["x-http-method-override"] = []string{"DELETE"} },
		"original URL":         func(r *http.Request) { r.Header.Set("X-Original-URL", "/api/v4/runners/7") },
		"sudo":                 func(r *http.Request) { r.Header.Set("Sudo", "root") },
		"trailer":              func(r *http.Request) { r.Trailer = http.Header{"X-A": nil} },
		"opaque":               func(r *http.Request) { r.URL.Opaque = "//gitlab.example/gitlab/api/v4/runners" },
		"raw path":             func(r *http.Request) { r.URL.RawPath = "/gitlab/api/v4/runners/%37" },
		"other host":           func(r *http.Request) { r.URL.Host = "evil.example" },
		"host header":          func(r *http.Request) { r.Host = "evil.example" },
		"other scheme":         func(r *http.Request) { r.URL.Scheme = "http" },
		"user":                 func(r *http.Request) { r.URL.User = url.User("x") },
		"redirect":             func(r *http.Request) { r.Response = &http.Response{} },
	} {
		req := request(t, "GET", "/api/v4/runners/7", "")
		if !passes(t, req) {
			t.Fatal("the plain request must pass")
		}
		bend(req)
		if passes(t, req) {
			t.Errorf("%s passed", name)
		}
	}
	form := request(t, "DELETE", "/api/v4/runners/managers", managerJSON)
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if passes(t, form) {
		t.Error("a form passed")
	}
}

func TestTheBodyThatIsSentIsTheOneThatWasChecked(t *testing.T) {
	g, w := guard(t)
	req := request(t, "DELETE", "/api/v4/runners/managers", `{"token":"a","system_id":"s_1","token":"b","_method":"x","SYSTEM_ID":"s_2"}`)
	resp, err := g.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got, want := w.body[0], `{"token":"b","system_id":"s_2"}`; got != want || w.sent[0].ContentLength != int64(len(want)) {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestEveryGraphQLMutationIsRefused(t *testing.T) {
	const known = `query($id: CiRunnerID!) { runner(id: $id) { id tokenExpiresAt } }`
	for body, pass := range map[string]bool{
		`{"query":"` + known + `","variables":{"id":"gid://gitlab/Ci::Runner/7"}}`:                     true,
		`{"query":"mutation { runnerDelete(input: {id: \"gid://gitlab/Ci::Runner/7\"}) { errors } }"}`: false,
		`{"query":"` + known + ` mutation M { runnerDelete(input: {}) { errors } }"}`:                  false,
		`{"query":"` + known + `","query":"mutation { x }"}`:                                           false,
		`{"query":"{ currentUser { id } }"}`:                                                           false,
		`[{"query":"` + known + `"}]`:                                                                  false,
		`{"id":"persisted-query-hash"}`:                                                                false,
		`{}`:                                                                                           false,
		``:                                                                                             false,
	} {
		if got := passes(t, request(t, "POST", "/api/graphql", body)); got != pass {
			t.Errorf("%s: passes %v, want %v", body, got, pass)
		}
	}
	g, w := guard(t)
	resp, err := g.RoundTrip(request(t, "POST", "/api/graphql", `{"query":"`+known+`","operationName":"M","extensions":{"persistedQuery":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if want := `{"query":"` + known + `"}`; w.body[0] != want {
		t.Errorf("sent %s, want %s", w.body[0], want)
	}
	if passes(t, request(t, "GET", "/api/graphql?query=mutation", "")) {
		t.Error("GraphQL by GET passed")
	}
}

// The client's own destructive methods, driven through the guard.
func TestTheClientsOwnDestructiveMethodsAreRefused(t *testing.T) {
	g, w := guard(t)
	c, err := gl.NewClient("glpat-x", gl.WithBaseURL(root), gl.WithHTTPClient(&http.Client{Transport: g}), gl.WithoutRetries())
	if err != nil {
		t.Fatal(err)
	}
	var out any
	for name, call := range map[string]func() error{
		"RemoveRunner":               func() error { _, err := c.Runners.RemoveRunner(7); return err },
		"DeleteRegisteredRunnerByID": func() error { _, err := c.Runners.DeleteRegisteredRunnerByID(7); return err },
		"DeleteRegisteredRunner": func() error {
			_, err := c.Runners.DeleteRegisteredRunner(&gl.DeleteRegisteredRunnerOptions{Token: new("t")})
			return err
		},
		"ResetRunnerAuthenticationToken": func() error { _, _, err := c.Runners.ResetRunnerAuthenticationToken(7); return err },
		"UpdateRunnerDetails": func() error {
			_, _, err := c.Runners.UpdateRunnerDetails(7, &gl.UpdateRunnerDetailsOptions{Paused: new(true)})
			return err
		},
		"VerifyRegisteredRunner": func() error {
			_, err := c.Runners.VerifyRegisteredRunner(&gl.VerifyRegisteredRunnerOptions{Token: new("t")})
			return err
		},
		"GraphQL mutation": func() error { _, err := c.GraphQL.Do(gl.GraphQLQuery{Query: "mutation { x }"}, &out); return err },
		"RetryJob":         func() error { _, _, err := c.Jobs.RetryJob(7, 7); return err },
	} {
		if _, ok := errors.AsType[*gitlab.RefusedError](call()); !ok {
			t.Errorf("%s was not refused", name)
		}
	}
	if len(w.sent) != 0 {
		t.Errorf("%d requests were sent", len(w.sent))
	}
	if _, _, err := c.Metadata.GetMetadata(gl.WithContext(context.Background())); len(w.sent) != 1 {
		t.Errorf("the client's harmless call did not pass: %v", err)
	}
}

// A client that follows redirects by itself is stopped at the second request.
func TestARedirectIsNotFollowedByAnyClient(t *testing.T) {
	hits := 0
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		http.Redirect(w, r, "/api/v4/runners/8", http.StatusTemporaryRedirect)
	}))
	defer hs.Close()
	base, err := url.Parse(hs.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: gitlab.NewGuard(base, http.DefaultTransport, nil)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hs.URL+"/api/v4/runners/7", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if _, ok := errors.AsType[*gitlab.RefusedError](err); !ok || hits != 1 {
		t.Errorf("%d requests, %v", hits, err)
	}
}

// Promise 2: the removal is of one manager, by name.
func TestARemovalNamesOneManagerAndOneToken(t *testing.T) {
	for body, pass := range map[string]bool{
		managerJSON:                           true,
		`{"token":"a"}`:                       false,
		`{"system_id":"s"}`:                   false,
		`{}`:                                  false,
		``:                                    false,
		`[]`:                                  false,
		`{"token":"a","system_id":""}`:        false,
		`{"token":"a","system_id":["s","t"]}`: false,
	} {
		if got := passes(t, request(t, "DELETE", "/api/v4/runners/managers", body)); got != pass {
			t.Errorf("%s: passed %t, want %t", body, got, pass)
		}
	}
}
