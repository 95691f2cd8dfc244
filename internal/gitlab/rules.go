package gitlab

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// rule is one call that may be made.
type rule struct {
	method string
	// path is the template below the instance's root; a segment that starts
	// with a colon stands for a number.
	path string
	// query are the keys that may be in the query. Tokens never are.
	query []string
	// body checks the request's body and returns the one to send; nil: the
	// call has none.
	body func([]byte) ([]byte, error)
}

// rules is the whole list. There is no call on it that can delete a runner
// entry, reset its token or pause it.
var rules = []rule{
	{method: http.MethodGet, path: "/api/v4/runners/:id"},
	{method: http.MethodGet, path: "/api/v4/runners/:id/managers"},
	{method: http.MethodGet, path: "/api/v4/runners/:id/jobs", query: []string{"system_id", "status", "page", "per_page"}},
	{method: http.MethodGet, path: "/api/v4/runners/router/discovery"},
	{method: http.MethodDelete, path: "/api/v4/runners/managers", body: managerBody},
	{method: http.MethodGet, path: "/api/v4/projects/:id/jobs/:job_id"},
	{method: http.MethodGet, path: "/api/v4/projects/:id/jobs/:job_id/trace"},
	{method: http.MethodGet, path: "/api/v4/projects/:id/pipelines/:pipeline_id/jobs", query: []string{"page", "per_page"}},
	{method: http.MethodGet, path: "/api/v4/projects/:id/hooks", query: []string{"per_page"}},
	{method: http.MethodGet, path: "/api/v4/projects/:id/hooks/:hook_id/events", query: []string{"per_page"}},
	{method: http.MethodGet, path: "/api/v4/projects", query: []string{"id_after", "id_before", "min_access_level", "simple"}},
	{method: http.MethodGet, path: "/api/v4/user"},
	{method: http.MethodGet, path: "/api/v4/personal_access_tokens/self"},
	{method: http.MethodGet, path: "/api/v4/metadata"},
	{method: http.MethodPost, path: "/api/graphql", body: graphQLBody},
}

// route names the rule for metrics, like "GET /runners/:id".
func (r rule) route() string {
	return r.method + " " + strings.TrimPrefix(r.path, "/api/v4")
}

// matches compares segment by segment, literally; numbers for parameters.
func (r rule) matches(path string) bool {
	want, got := strings.Split(r.path, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, w := range want {
		if strings.HasPrefix(w, ":") {
			if !isNumber(got[i]) {
				return false
			}
		} else if w != got[i] {
			return false
		}
	}
	return true
}

func isNumber(text string) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != "" && len(text) <= 19
}

func (r rule) badQuery(u *url.URL) string {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "its query is malformed"
	}
	for key, values := range q {
		if !slices.Contains(r.query, key) || len(values) != 1 {
			return "its query has " + key
		}
	}
	return ""
}

func (r rule) checkBody(req *http.Request, body []byte) ([]byte, error) {
	if r.body == nil {
		if body != nil {
			return nil, errors.New("it has a body")
		}
		return nil, nil
	}
	if body == nil {
		return r.body(nil)
	}
	kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, errors.New("its body is not JSON")
	}
	return r.body(body)
}

// managerBody lets pass exactly one token and one system_id, both given: the
// call removes one manager.
func managerBody(body []byte) ([]byte, error) {
	var b managerRef
	if err := json.Unmarshal(body, &b); err != nil || b.Token == "" || b.SystemID == "" {
		return nil, errors.New("its body does not name a token and a system_id")
	}
	return json.Marshal(b)
}

// managerRef is the body of DELETE /runners/managers.
type managerRef struct {
	Token    string `json:"token"`
	SystemID string `json:"system_id"`
}

// graphQLBody lets pass only the documents of this package, word by word: no
// mutation can be said with them. The body is made anew, so that what is sent
// is what was read.
func graphQLBody(body []byte) ([]byte, error) {
	var b graphQLCall
	if err := json.Unmarshal(body, &b); err != nil || !slices.Contains(graphQLDocuments, b.Query) {
		return nil, errors.New("it is not one of the GraphQL queries Sluice makes")
	}
	return json.Marshal(b)
}

type graphQLCall struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables,omitempty"`
}

// tokenExpiryQuery reads what the REST API does not show (facts/gitlab.md 10.1).
const tokenExpiryQuery = `query($id: CiRunnerID!) { runner(id: $id) { id tokenExpiresAt } }` //nolint:gosec // a query, no credential

var graphQLDocuments = []string{tokenExpiryQuery}

// Routes lists the routes that Config.Observe can name, so that metrics can
// start every series at 0. "other" stands for all that is refused.
func Routes() []string {
	out := []string{"other"}
	for _, r := range append(rules[:len(rules):len(rules)], writeRules...) {
		if !slices.Contains(out, r.route()) {
			out = append(out, r.route())
		}
	}
	return append(out, removalRoute)
}
