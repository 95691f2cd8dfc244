package api

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/labstack/echo/v4"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

type callerKey struct{}

// role says which rules hold for a visitor.
type role int

// The roles. Who was not given one may do nothing.
const (
	nobody   role = iota
	operator      // a person, at the socket or with a static token: everything
	pipeline      // a CI job: what access says of its claims
	follower      // reads the operations of its token
)

// visitor is who makes a request, and what limits them.
type visitor struct {
	role    role
	by      fleet.Actor
	key     string         // what limits count by; "" = no limits
	claims  *access.Claims // of a pipeline
	follows []string       // of a follower
}

// WithCaller marks a request's context: the door that it came through has
// said already who is asking (the Unix socket, or the same process).
func WithCaller(ctx context.Context, by fleet.Actor) context.Context {
	return context.WithValue(ctx, callerKey{}, &visitor{role: operator, by: by})
}

func caller(ctx context.Context) (*visitor, bool) {
	v, ok := ctx.Value(callerKey{}).(*visitor)
	return v, ok
}

// open are the routes that need no caller: probes, the scrape, the document.
func open(path string) bool {
	switch path {
	case "/livez", "/readyz", "/metrics", "/openapi.json", "/openapi.yaml", "/openapi-3.0.json", "/openapi-3.0.yaml":
		return true
	default:
		return false
	}
}

// recoverer keeps one broken request from ending the process, and the panic
// out of the answer.
func (s *Server) recoverer(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if r := recover(); r != nil {
				s.Log.ErrorContext(c.Request().Context(), "a request panicked", "path", c.Request().URL.Path, "panic", r, "stack", string(debug.Stack()))
				err = echo.ErrInternalServerError
			}
		}()
		return next(c)
	}
}

// call is one request: its context and who makes it.
type call struct {
	context.Context //nolint:containedctx // it is the request
	*visitor
}

// adapt makes a huma handler of ours: it knows the caller, and every error
// becomes a problem document here.
func adapt[I, O any](s *Server, handler func(*call, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		who, ok := caller(ctx)
		if !ok {
			who = &visitor{}
		}
		out, err := handler(&call{Context: ctx, visitor: who}, in)
		if err == nil {
			return out, nil
		}
		if refusal, ok := errors.AsType[*access.Refusal](err); ok {
			return nil, s.refusal(ctx, who.by.Name, refusal)
		}
		p, known := problem(err)
		if !known || p.Status >= http.StatusInternalServerError {
			s.Log.ErrorContext(ctx, "a request failed", "error", err)
		}
		return nil, p
	}
}
