package gitlab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxRequestBody and maxAnswer bound what is sent and read, in bytes.
const (
	maxRequestBody = 64 << 10
	maxAnswer      = 16 << 20
)

// RefusedError says that a call is not one of those this program may make. It
// is a mistake of ours, never of GitLab's.
type RefusedError struct {
	Method string
	Path   string // without query
	Reason string
}

// Error names the call and why it is refused.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused to send %s %s to GitLab: %s", e.Method, e.Path, e.Reason)
}

// Guard is the allow-list transport (design.md, promise 2). It passes only
// requests to its own instance that match a rule in method, path, query keys,
// headers and body; a request that follows a redirect matches none.
type Guard struct {
	base    *url.URL // the instance's root; its path has no slash at the end
	next    http.RoundTripper
	rules   []rule
	observe func(route, code string)
}

// NewGuard returns a Guard in front of next for the instance at base. observe
// is told of every attempt: the rule's route and the status, "error" when no
// answer came, "paused" or "refused" when nothing was sent. It may be nil.
func NewGuard(base *url.URL, next http.RoundTripper, observe func(route, code string)) *Guard {
	return newGuard(base, next, rules, observe)
}

func newGuard(base *url.URL, next http.RoundTripper, list []rule, observe func(route, code string)) *Guard {
	root := *base
	root.Path = strings.TrimRight(root.Path, "/")
	if observe == nil {
		observe = func(string, string) {}
	}
	return &Guard{base: &root, next: next, rules: list, observe: observe}
}

// RoundTrip implements http.RoundTripper. Errors: *RefusedError, or next's.
func (g *Guard) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := takeBody(req)
	if err != nil {
		return nil, err
	}
	r, body, reason := g.admit(req, body)
	if reason != "" {
		g.observe("other", "refused")
		return nil, &RefusedError{Method: req.Method, Path: req.URL.Path, Reason: reason}
	}
	out := req.Clone(req.Context())
	out.Body, out.GetBody, out.ContentLength = http.NoBody, nil, 0
	if body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
		out.ContentLength = int64(len(body))
	}
	resp, err := g.next.RoundTrip(out)
	if err != nil {
		g.observe(r.route(), failure(err))
		return nil, err
	}
	g.observe(r.route(), strconv.Itoa(resp.StatusCode))
	resp.Body = &boundedBody{Reader: io.LimitReader(resp.Body, maxAnswer), Closer: resp.Body}
	return resp, nil
}

// failure is the code of an attempt without an answer.
func failure(err error) string {
	if _, ok := errors.AsType[*PausedError](err); ok {
		return "paused"
	}
	return "error"
}

type boundedBody struct {
	io.Reader
	io.Closer
}

// admit finds the rule that lets the request pass and the body to send, which
// is made anew from what was checked. A reason means refusal.
func (g *Guard) admit(req *http.Request, body []byte) (rule, []byte, string) {
	path, reason := g.ownPath(req)
	if reason != "" {
		return rule{}, nil, reason
	}
	if reason := badHeader(req); reason != "" {
		return rule{}, nil, reason
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	for _, r := range g.rules {
		if r.method != method || !r.matches(path) {
			continue
		}
		if reason := r.badQuery(req.URL); reason != "" {
			return rule{}, nil, reason
		}
		clean, err := r.checkBody(req, body)
		if err != nil {
			return rule{}, nil, err.Error()
		}
		return r, clean, ""
	}
	return rule{}, nil, "it is not one of the calls Sluice makes"
}

// ownPath returns the path below the instance's root if the request goes to
// this instance and its path is written in the one plain way.
func (g *Guard) ownPath(req *http.Request) (path, reason string) {
	u := req.URL
	switch {
	case req.Response != nil:
		return "", "it follows a redirect"
	case u.Scheme != g.base.Scheme || u.Host != g.base.Host || req.Host != "" && req.Host != g.base.Host:
		return "", "it goes to another host"
	case u.Opaque != "" || u.User != nil || u.Fragment != "":
		return "", "its URL is not plain"
	}
	escaped := u.EscapedPath()
	if escaped != u.Path {
		return "", "its path is encoded"
	}
	path, ok := strings.CutPrefix(escaped, g.base.Path)
	if !ok {
		return "", "it is outside of the instance's path"
	}
	return path, ""
}

// plainHeaders are all that our calls carry. Everything else is refused, and
// with it every way to say another method than the one that was checked.
var plainHeaders = []string{
	"Accept", "Accept-Encoding", "Authorization", "Content-Type", "Content-Length",
	"Private-Token", "Runner-Token", "User-Agent",
}

func badHeader(req *http.Request) string {
	for name := range req.Header {
		if !slices.Contains(plainHeaders, http.CanonicalHeaderKey(name)) {
			return "it carries the header " + name
		}
	}
	if len(req.Trailer) > 0 {
		return "it carries trailers"
	}
	return ""
}

// takeBody reads and closes the request's body; nil for none.
func takeBody(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	defer func() { _ = req.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequestBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	if len(body) > maxRequestBody {
		return nil, errors.New("the request's body is too large")
	}
	if len(body) == 0 {
		return nil, nil
	}
	return body, nil
}
