package gitlab

import (
	"encoding/json"
	"errors"
	"net/http"
)

// writeRules are the calls that a Writer may make, and all of them. No other
// client may make the first two.
var writeRules = []rule{
	{method: http.MethodPost, path: "/api/v4/projects/:id/jobs/:job_id/cancel", body: cancelBody},
	{method: http.MethodPost, path: "/api/v4/projects/:id/jobs/:job_id/retry"},
	// For doctor: what the token is, and in which projects its user may use it.
	{method: http.MethodGet, path: "/api/v4/personal_access_tokens/self"},
	{method: http.MethodGet, path: "/api/v4/projects", query: []string{"id_after", "id_before", "min_access_level", "simple"}},
}

// cancelCall is the body of a cancel (facts/gitlab.md 10.2).
type cancelCall struct {
	Force bool `json:"force"`
}

// cancelBody lets pass no body, or one that says whether to force.
func cancelBody(body []byte) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	var c cancelCall
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, errors.New("its body is not that of a cancel")
	}
	return json.Marshal(c)
}
