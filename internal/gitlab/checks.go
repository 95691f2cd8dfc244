package gitlab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// TokenInfo is what GitLab says of the user token we hold.
type TokenInfo struct {
	Name      string
	Scopes    []string
	ExpiresAt time.Time // midnight UTC of the last day; zero: never
}

// CanRead says whether the scopes suffice for readings.
func (t TokenInfo) CanRead() bool { return t.has("read_api") || t.has("api") }

func (t TokenInfo) has(scope string) bool { return slices.Contains(t.Scopes, scope) }

// Token describes the user token, for doctor. Errors: as for readings.
func (in *Instance) Token(ctx context.Context) (TokenInfo, error) {
	record, _, err := get[struct {
		Name      string      `json:"name"`
		Scopes    []string    `json:"scopes"`
		ExpiresAt *gl.ISOTime `json:"expires_at"`
	}](ctx, in, call{
		what: "describe the token", client: in.user, method: http.MethodGet, path: "personal_access_tokens/self",
		hint403: "the token may not describe itself; that alone does no harm",
		hint404: "this GitLab cannot describe this kind of token; that alone does no harm",
	})
	if err != nil {
		return TokenInfo{}, err
	}
	t := TokenInfo{Name: record.Name, Scopes: record.Scopes}
	if record.ExpiresAt != nil {
		t.ExpiresAt = time.Time(*record.ExpiresAt)
	}
	return t, nil
}

// Version is the instance's version, for doctor.
func (in *Instance) Version(ctx context.Context) (string, error) {
	m, _, err := get[gl.Metadata](ctx, in, call{
		what: "say its version", client: in.user, method: http.MethodGet, path: "metadata",
		hint404: "is gitlab.url the address of a GitLab?",
	})
	return m.Version, err
}

// TokenExpiry is when the runner token expires: zero for never, or when the
// user token may not see it (facts/gitlab.md 10.1). A token with an expiry is
// rotated by the first runner that reaches 75 % of it and dies for the others.
func (e *Entry) TokenExpiry(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, e.in.cfg.Timeout)
	defer cancel()
	c := e.call("say when the token expires of", "")
	u := *e.in.base
	u.Path = e.in.base.JoinPath("api", "graphql").Path
	req, err := e.in.user.NewRequestToURL(http.MethodPost, &u, graphQLCall{
		Query:     tokenExpiryQuery,
		Variables: map[string]any{"id": fmt.Sprintf("gid://gitlab/Ci::Runner/%d", e.id)},
	}, []gl.RequestOptionFunc{gl.WithContext(ctx)})
	if err != nil {
		return time.Time{}, e.in.explain(c, nil, err)
	}
	var raw json.RawMessage
	resp, err := e.in.user.Do(req, &raw)
	if err != nil {
		return time.Time{}, e.in.explain(c, resp, err)
	}
	return e.expiryOf(c, resp, raw)
}

// expiryOf reads the answer: GraphQL says 200 to errors too.
func (e *Entry) expiryOf(c call, resp *gl.Response, raw json.RawMessage) (time.Time, error) {
	var out struct {
		Errors []json.RawMessage `json:"errors"`
		Data   struct {
			Runner *struct {
				TokenExpiresAt *time.Time `json:"tokenExpiresAt"`
			} `json:"runner"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &out); err != nil || len(out.Errors) > 0 {
		return time.Time{}, e.in.badAnswer(c, resp)
	}
	if out.Data.Runner == nil {
		return time.Time{}, fleet.Errorf(fleet.CodeNotFound, "%s was asked to %s and shows no such runner", e.in.name(), c.what).
			WithHint("%s", c.hint404)
	}
	return timeOf(out.Data.Runner.TokenExpiresAt), nil
}
