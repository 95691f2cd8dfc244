package api

import (
	"context"
	"net"
	"net/http"
	"runtime/debug"

	"github.com/labstack/echo/v4"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

type callerKey struct{}

// WithCaller marks a request's context: the door that it came through has
// said already who is asking (the Unix socket, or the same process).
func WithCaller(ctx context.Context, by fleet.Actor) context.Context {
	return context.WithValue(ctx, callerKey{}, by)
}

func caller(ctx context.Context) (fleet.Actor, bool) {
	by, ok := ctx.Value(callerKey{}).(fleet.Actor)
	return by, ok
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

// authenticate lets a request in if its door or its bearer token says who is
// asking (RFC 6750).
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		if _, ok := caller(request.Context()); ok || open(request.URL.Path) {
			return next(c)
		}
		name, err := s.Tokens.Authenticate(request.Header.Get(echo.HeaderAuthorization))
		if err != nil {
			s.Log.WarnContext(request.Context(), "a request was refused", "from", request.RemoteAddr, "path", request.URL.Path, "error", err)
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="sluice"`)
			write(c, &Problem{
				Status: http.StatusUnauthorized, Title: http.StatusText(http.StatusUnauthorized),
				Detail: err.Error(), Code: codeUnauthorized,
				Hint: "send a token of server.tokens: with the CLI set SLUICE_TOKEN",
			})
			return nil
		}
		from, _, err := net.SplitHostPort(request.RemoteAddr)
		if err != nil {
			from = request.RemoteAddr
		}
		c.SetRequest(request.WithContext(WithCaller(request.Context(), fleet.Actor{Name: name, From: from})))
		return next(c)
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
	by              fleet.Actor
}

// adapt makes a huma handler of ours: it knows the caller, and every error
// becomes a problem document here.
func adapt[I, O any](s *Server, handler func(*call, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		by, _ := caller(ctx)
		out, err := handler(&call{Context: ctx, by: by}, in)
		if err == nil {
			return out, nil
		}
		p, known := problem(err)
		if !known || p.Status >= http.StatusInternalServerError {
			s.Log.ErrorContext(ctx, "a request failed", "error", err)
		}
		return nil, p
	}
}
