package gitlab

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// name is how messages call the instance.
func (in *Instance) name() string { return "GitLab " + in.base.Host }

// explain turns what went wrong into an error that a person can act on. It
// reads codes and types, never the text of an error.
func (in *Instance) explain(c call, resp *gl.Response, err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return fleet.Errorf(fleet.CodeInternal, "%s cannot be asked to %s: %w", in.name(), c.what, refused)
	}
	if paused, ok := errors.AsType[*PausedError](err); ok {
		return fleet.Errorf(fleet.CodeRateLimited, "%s was not asked to %s: %w", in.name(), c.what, paused)
	}
	if resp == nil || resp.Response == nil {
		return in.noAnswer(c, err)
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return in.badAnswer(c, resp)
	}
	return in.refusal(c, resp, said(err))
}

// noAnswer explains a request that got none.
func (in *Instance) noAnswer(c call, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return fleet.Errorf(fleet.CodeCanceled, "%s was asked to %s, but nobody waited for the answer", in.name(), c.what)
	case errors.Is(err, context.DeadlineExceeded):
		return fleet.Errorf(fleet.CodeUnavailable, "%s did not answer in time when asked to %s", in.name(), c.what).
			WithHint("is %s slow, or does something on the way swallow the connection?", in.base.Host)
	}
	if cause, ok := errors.AsType[*url.Error](err); ok {
		err = cause.Err // without the URL, which repeats what is said here
	}
	return fleet.Errorf(fleet.CodeUnavailable, "%s could not be asked to %s: %w", in.name(), c.what, err).
		WithHint("check gitlab.url and the way to it")
}

// badAnswer explains a good status with a body that is not what was asked for.
func (in *Instance) badAnswer(c call, resp *gl.Response) error {
	kind := resp.Header.Get("Content-Type")
	if !isJSON(kind) {
		return fleet.Errorf(fleet.CodeUnavailable, "%s was asked to %s and answered %d with %q instead of JSON",
			in.name(), c.what, resp.StatusCode, printable(kind)).
			WithHint("a login page or a proxy seems to stand before it: check gitlab.url")
	}
	return fleet.Errorf(fleet.CodeUnavailable, "%s was asked to %s and gave an answer that is cut off or not as expected",
		in.name(), c.what)
}

func isJSON(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(kind) == "application/json"
}

// refusal explains a status of 300 and above. detail is GitLab's own word.
func (in *Instance) refusal(c call, resp *gl.Response, detail refusalText) error {
	status := resp.StatusCode
	text := redact(detail.text, in.cfg.Token, c.secret)
	if text != "" {
		text = ": " + text
	}
	err := func(code fleet.Code) *fleet.Error {
		return fleet.Errorf(code, "%s was asked to %s and answered %d%s", in.name(), c.what, status, text)
	}
	switch {
	case status == http.StatusUnauthorized:
		return err(fleet.CodeForbidden).WithHint("the token is wrong, revoked or expired: put a valid one with scope %s into %s", in.scope, in.key)
	case status == http.StatusForbidden && detail.code == "insufficient_scope":
		return err(fleet.CodeForbidden).WithHint("the token in %s lacks the scope %s: make one that has it", in.key, in.scope)
	case status == http.StatusForbidden:
		return err(fleet.CodeForbidden).WithHint("%s", c.hint403)
	case status == http.StatusNotFound:
		return err(fleet.CodeNotFound).WithHint("%s", c.hint404)
	case status == http.StatusTooManyRequests:
		wait := retryAfter(resp.Response, in.cfg.Now()).Round(time.Second)
		return err(fleet.CodeRateLimited).WithHint("it is left alone for %s", wait)
	case status < http.StatusBadRequest:
		return err(fleet.CodeUnavailable).WithHint("it redirects to %s and Sluice follows no redirect: set gitlab.url to the final address", redirectHost(resp.Response))
	case status >= http.StatusInternalServerError:
		return err(fleet.CodeUnavailable)
	}
	return err(fleet.CodeInvalid)
}

func redirectHost(resp *http.Response) string {
	u, err := resp.Location()
	if err != nil {
		return "nowhere"
	}
	return printable(u.Scheme + "://" + u.Host)
}

// refusalText is GitLab's own word on a refusal.
type refusalText struct {
	code string // the OAuth error code, like insufficient_scope
	text string
}

// said reads GitLab's error body (facts/gitlab.md 1.8); empty if it has none.
func said(err error) refusalText {
	e, ok := errors.AsType[*gl.ErrorResponse](err)
	if !ok {
		return refusalText{}
	}
	var body struct {
		Message any    `json:"message"`
		Error   string `json:"error"`
	}
	if json.Unmarshal(e.Body, &body) != nil {
		return refusalText{}
	}
	text, _ := body.Message.(string)
	if text == "" {
		text = body.Error
	}
	return refusalText{code: body.Error, text: text}
}

const longestDetail = 120

// redact makes a foreign text fit to be shown: short, printable, no token.
func redact(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[token]")
		}
	}
	return printable(text)
}

func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > longestDetail {
		text = string(runes[:longestDetail]) + "…"
	}
	return text
}
