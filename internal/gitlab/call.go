package gitlab

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	gl "gitlab.com/gitlab-org/api/client-go/v2"
)

// answer is what came back, read completely.
type answer struct {
	*gl.Response
	body []byte
}

// serverTime is GitLab's clock when it answered; zero if it did not say.
func (a answer) serverTime() time.Time {
	t, err := http.ParseTime(a.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t
}

// call is one request: what it does in words, for messages, and how.
type call struct {
	what    string // "list the managers of runner 7"
	hint403 string // what to do when GitLab says that we may not
	hint404 string
	client  *gl.Client
	method  string
	path    string // below /api/v4/
	query   any    // struct with url tags
	headers map[string]string
	body    any    // JSON
	secret  string // never shown, should GitLab repeat it
}

// do sends c within the instance's timeout and returns the whole body.
// Errors: *fleet.Error; CodeUnavailable, CodeRateLimited, CodeForbidden,
// CodeNotFound, CodeInvalid. The answer is returned with an error too, if
// there was one.
func (in *Instance) do(ctx context.Context, c call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.Timeout)
	defer cancel()
	req, err := c.client.NewRequest(c.method, c.path, c.query, []gl.RequestOptionFunc{gl.WithContext(ctx), c.prepare})
	if err != nil {
		return answer{}, in.explain(c, nil, err)
	}
	var buf bytes.Buffer
	resp, err := c.client.Do(req, &buf)
	a := answer{Response: resp, body: buf.Bytes()}
	if err != nil {
		return a, in.explain(c, resp, err)
	}
	return a, nil
}

// prepare adds headers and body. For a DELETE, client-go would put options
// into the query, and with them the token.
func (c call) prepare(req *retryablehttp.Request) error {
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	if c.body == nil {
		return nil
	}
	raw, err := json.Marshal(c.body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return req.SetBody(raw)
}

// get sends c and decodes the body, which must be one complete JSON value.
func get[T any](ctx context.Context, in *Instance, c call) (T, answer, error) {
	var v *T
	a, err := in.do(ctx, c)
	if err != nil {
		return *new(T), a, err
	}
	if err := json.Unmarshal(a.body, &v); err != nil || v == nil {
		return *new(T), a, in.badAnswer(c, a.Response)
	}
	return *v, a, nil
}
