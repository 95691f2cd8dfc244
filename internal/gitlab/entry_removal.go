package gitlab

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// This file is the whole of the one call that can delete a runner entry, and the
// only place that makes it (design.md section 6). [Guard], which every other
// request passes, cannot be brought to send it.

// removalRoute names the call for metrics.
const removalRoute = "DELETE /runners/:id"

// RemoveEntry implements engine.Entries. The entry is read anew here, and what
// removes it is good for that entry and for one request.
func (es *Entries) RemoveEntry(ctx context.Context, claim fleet.EntryClaim) (doubt string, err error) {
	what := "remove the runner entry " + strconv.FormatInt(claim.Entry, 10)
	if es.write == "" {
		return "", fleet.Errorf(fleet.CodeForbidden, "%s was not asked to %s: no gitlab.write_token is configured", es.in.name(), what).
			WithHint("set gitlab.write_token, remove the entry in GitLab, or set registration: none to leave entries alone")
	}
	state, answered, err := es.state(ctx, claim.Entry)
	if err != nil {
		return "", err
	}
	if doubt := claim.Doubt(state, answered); doubt != "" {
		return doubt, nil
	}
	r := &removal{in: es.in, token: es.write, id: claim.Entry, unmodifiedSince: state.At, what: what}
	return "", r.send(ctx)
}

// state reads the entry and its managers, past every answer that is kept. Errors:
// CodeNotFound if GitLab itself says that there is no such entry; as for readings.
func (es *Entries) state(ctx context.Context, id int64) (fleet.EntryState, time.Time, error) {
	e := es.in.Entry(id)
	e.ofVM = true
	managers, err := e.fetchManagers(ctx)
	if err != nil {
		return fleet.EntryState{}, time.Time{}, err
	}
	answered := es.in.cfg.Now()
	c := e.call("describe", "")
	d, a, err := get[runnerDetails](ctx, es.in, c)
	if err == nil && d.ID != id {
		err = es.in.badAnswer(c, a.Response)
	}
	return fleet.EntryState{
		Description: d.Description, CreatedAt: timeOf(d.CreatedAt), At: managers.at, Managers: managers.all,
	}, answered, es.in.only404(c, a.Response, err)
}

// only404 makes sure that "there is none" is GitLab's word, and not that of
// something on the way to it.
func (in *Instance) only404(c call, resp *gl.Response, err error) error {
	if fleet.CodeOf(err) == fleet.CodeNotFound && (resp == nil || resp.Response == nil || !isJSON(resp.Header.Get("Content-Type"))) {
		return fleet.Errorf(fleet.CodeUnavailable, "%s was asked to %s and something else than GitLab answered 404", in.name(), c.what)
	}
	return err
}

// removal is the capability to remove one runner entry, once. As a transport it
// sends one DELETE of its own entry's URL; whatever else it is asked for, and
// whatever it is asked for again, it refuses, before a byte is sent.
type removal struct {
	in    *Instance
	token string
	id    int64
	what  string
	// unmodifiedSince is GitLab's clock at the look: what was changed since is
	// answered with 412 (facts/gitlab.md section 3).
	unmodifiedSince time.Time
	used            atomic.Bool
}

// send makes the call. Nothing is sent once ctx has ended. Errors: CodeNotFound,
// CodeConflict (412), CodeForbidden, CodeUnavailable, CodeRateLimited.
func (r *removal) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.in.cfg.Timeout)
	defer cancel()
	c := call{what: r.what, secret: r.token, hint404: "it is gone already"}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, r.url(), http.NoBody)
	if err != nil {
		return r.in.explain(c, nil, err)
	}
	req.Header.Set("Private-Token", r.token)
	req.Header.Set("User-Agent", r.in.cfg.UserAgent)
	req.Header.Set("If-Unmodified-Since", r.unmodifiedSince.UTC().Format(http.TimeFormat))
	client := &http.Client{Transport: r, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return r.in.explain(c, nil, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	return r.refused(c, resp)
}

func (r *removal) url() string {
	return r.in.base.JoinPath("api", "v4", "runners", strconv.FormatInt(r.id, 10)).String()
}

// refused explains any answer but 204.
func (r *removal) refused(c call, resp *http.Response) error {
	err := gl.CheckResponse(resp)
	answer := &gl.Response{Response: resp}
	if err == nil { // a 200, of whatever
		return r.in.badAnswer(c, answer)
	}
	err = r.in.only404(c, answer, r.in.explain(c, answer, err))
	explained, ok := errors.AsType[*fleet.Error](err)
	switch {
	case ok && resp.StatusCode == http.StatusPreconditionFailed:
		return fleet.Errorf(fleet.CodeConflict, "%s was asked to %s: somebody has changed it a moment ago", r.in.name(), c.what)
	case ok && explained.Code == fleet.CodeForbidden:
		return explained.WithHint("gitlab.write_token needs the scope manage_runner (or api), and its user the Owner role on the group that owns the entry (Maintainer on the project of a project runner, an administrator for an instance runner); an entry that is enabled in several projects only an administrator may delete")
	}
	return err
}

// RoundTrip implements http.RoundTripper. Errors: *RefusedError, or the wire's.
func (r *removal) RoundTrip(req *http.Request) (*http.Response, error) {
	reason := ""
	switch first := r.used.CompareAndSwap(false, true); {
	case !first:
		reason = "this removal was used already"
	case req.Method != http.MethodDelete || req.URL.String() != r.url() || req.Host != "" && req.Host != r.in.base.Host:
		reason = "this removal is of " + r.url() + " alone"
	case req.Response != nil:
		reason = "it follows a redirect"
	case req.Body != nil && req.Body != http.NoBody:
		reason = "it has a body"
	}
	if reason != "" {
		r.observe("refused")
		return nil, &RefusedError{Method: req.Method, Path: req.URL.Path, Reason: reason}
	}
	resp, err := r.in.wire.RoundTrip(req)
	if err != nil {
		r.observe(failure(err))
		return nil, err
	}
	r.observe(strconv.Itoa(resp.StatusCode))
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	return resp, nil
}

func (r *removal) observe(code string) {
	if r.in.cfg.Observe != nil {
		r.in.cfg.Observe(removalRoute, code)
	}
}
