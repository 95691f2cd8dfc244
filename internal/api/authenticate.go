package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// How failures of one address are slowed when there are too many: each is held
// back this long, so many at once; what comes beside them is answered at once.
const (
	slowBy     = time.Second
	slowAtOnce = 64
	retryAfter = 5 // seconds
)

// authenticate lets a request in if its door or its bearer token says who is
// asking (RFC 6750), and if that caller may be here at all.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		ctx := request.Context()
		if _, ok := caller(ctx); ok || open(request.URL.Path) {
			return next(c)
		}
		who, err := s.identify(ctx, request)
		if err != nil {
			return s.turnAway(c, err, true)
		}
		if err := s.throttle.Admit(who.key, request.Method != http.MethodGet); err != nil {
			return s.turnAway(c, err, false)
		}
		if err := s.mayEnter(c, who); err != nil {
			return s.turnAway(c, err, who.role == follower)
		}
		c.SetRequest(request.WithContext(context.WithValue(ctx, callerKey{}, who)))
		return next(c)
	}
}

// identify says who sends a bearer token: a CI job, a follower, or the owner
// of a static token. Errors: *access.Refusal, or those of the store.
func (s *Server) identify(ctx context.Context, request *http.Request) (*visitor, error) {
	token, err := access.Bearer(request.Header.Get(echo.HeaderAuthorization))
	if err != nil {
		return nil, err
	}
	from := address(request)
	switch {
	case s.Pipelines.Knows(token):
		claims, err := s.Pipelines.Authenticate(ctx, token)
		if err != nil {
			return nil, err
		}
		return &visitor{role: pipeline, by: fleet.Actor{Name: claims.Name(), From: from}, key: claims.Caller(), claims: claims}, nil
	case s.Pipelines.Follows(token):
		operations, err := s.Pipelines.Followed(ctx, token)
		if err != nil {
			return nil, err
		}
		return &visitor{role: follower, by: fleet.Actor{Name: "follower", From: from}, key: "follower " + access.Hash(token), follows: operations}, nil
	}
	name, err := s.Tokens.Authenticate(token)
	if err != nil {
		return nil, err
	}
	return &visitor{role: operator, by: fleet.Actor{Name: name, From: from}, key: "token " + name}, nil
}

// address is where a request comes from, without the port. Behind a proxy it is
// the proxy's.
func address(request *http.Request) string {
	host, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil {
		return request.RemoteAddr
	}
	return host
}

// turnAway answers whoever is not let in. Failures to say who one is are
// counted by address, and answered late if there are too many. The answer is
// the same: an address may be a proxy's, and the one who is refused now an
// honest caller who must learn why.
func (s *Server) turnAway(c echo.Context, err error, failure bool) error {
	ctx, from := c.Request().Context(), address(c.Request())
	refusal, ok := errors.AsType[*access.Refusal](err)
	if !ok {
		p, known := problem(err)
		if !known || p.Status >= http.StatusInternalServerError {
			s.Log.ErrorContext(ctx, "a request failed", "path", c.Request().URL.Path, "error", err)
		}
		write(c, p)
		return nil
	}
	p := s.refusal(ctx, from, refusal)
	if failure && refusal.Reason != access.ReasonKeys && s.throttle.Failed(from) {
		s.hold(ctx)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="sluice"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(retryAfter))
	}
	write(c, p)
	return nil
}

// hold keeps an answer back for a moment, unless many are held already.
func (s *Server) hold(ctx context.Context) {
	select {
	case s.slowed <- struct{}{}:
		defer func() { <-s.slowed }()
	default:
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(slowBy):
	}
}

// refusal counts and logs a refusal and makes the problem that the caller gets.
func (s *Server) refusal(ctx context.Context, who string, r *access.Refusal) *Problem {
	if s.Refused != nil {
		s.Refused(r.Reason)
	}
	s.Log.WarnContext(ctx, "a request was refused", "who", who, "reason", string(r.Reason), "text", r.Text, "detail", r.Detail)
	p := &Problem{Status: refusalStatus(r.Reason), Detail: r.Error(), Hint: r.Hint}
	p.Title, p.Code = http.StatusText(p.Status), codeOfStatus(p.Status)
	return p
}

// refusalStatus is the one place where reasons become HTTP statuses.
func refusalStatus(reason access.Reason) int {
	switch reason {
	case access.ReasonPolicy, access.ReasonReplayed, access.ReasonScope:
		return http.StatusForbidden
	case access.ReasonNoKey:
		return http.StatusUnprocessableEntity
	case access.ReasonRate:
		return http.StatusTooManyRequests
	case access.ReasonKeys:
		return http.StatusServiceUnavailable
	default:
		return http.StatusUnauthorized
	}
}
