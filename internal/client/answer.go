package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// bodyLimit bounds an answer: the journal in pieces of 1000 events fits.
const bodyLimit = 16 << 20

// read turns a response into a value or an error.
func read[T any](c *Client, response *http.Response, err error) (*T, error) {
	if err != nil {
		return nil, c.unreachable(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode/100 != 2 {
		return nil, c.refused(response, body)
	}
	value := new(T)
	if err := json.Unmarshal(body, value); err != nil {
		return nil, fleet.Errorf(fleet.CodeInternal, "%s answered something that is not Sluice's API: %w", c.where, err).
			WithHint("check --server; a proxy or another service may be there")
	}
	return value, nil
}

func (c *Client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return fleet.Errorf(fleet.CodeCanceled, "interrupted: %w", err)
	}
	var inner interface{ Unwrap() error }
	if errors.As(err, &inner) { // *url.Error repeats method and URL
		if cause := inner.Unwrap(); cause != nil {
			err = cause
		}
	}
	return fleet.Errorf(fleet.CodeUnavailable, "%s does not answer: %w", c.where, err).
		WithHint("see that `sluice serve` runs there, or leave --server out to work alone")
}

// refused reads a problem document (RFC 9457); anything else is no Sluice.
func (c *Client) refused(response *http.Response, body []byte) error {
	var p Problem
	if err := json.Unmarshal(body, &p); err != nil || p.Code == "" {
		return fleet.Errorf(fleet.CodeUnavailable, "%s answered %s, not Sluice's API", c.where, response.Status).
			WithHint("check --server; a proxy or another service may be there")
	}
	e := &fleet.Error{Code: fleet.Code(p.Code), Message: text(p.Detail), Err: said{}}
	if p.Errors != nil {
		var parts []string
		for _, d := range *p.Errors {
			parts = append(parts, strings.TrimPrefix(text(d.Location), "body.")+": "+text(d.Message))
		}
		e.Message += ": " + strings.Join(parts, "; ")
	}
	if e.Message == "" {
		e.Message = c.where + " refused it and does not say why (" + response.Status + ")"
	}
	e.Hint = text(p.Hint)
	return e
}

// said marks what a server said itself.
type said struct{}

func (said) Error() string { return "" }

// Answered says whether an error is the server's own word: then it was reached,
// and its hint is worth more than a guess about the network.
func Answered(err error) bool {
	_, ok := errors.AsType[said](err)
	return ok
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
