package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// Limits of every request (OWASP API4:2023, unrestricted resource consumption).
const (
	bodyLimit    = 64 << 10         // bytes
	requestLimit = 90 * time.Second // the longest handler is doctor's
	waitLimit    = 20 * time.Second // of a long poll
)

// Server is the API as an http.Handler.
type Server struct {
	Options
	echo *echo.Echo
	api  huma.API
}

// New makes the API.
func New(o Options) *Server {
	s := &Server{Options: o, echo: echo.New()}
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = s.fallback
	s.echo.Use(middleware.BodyLimit("64K"), middleware.ContextTimeout(requestLimit), s.recoverer, s.authenticate)
	s.api = humaecho.New(s.echo, document(o.Version))
	s.probes()
	s.fleets()
	s.operations()
	s.events()
	s.deliveries()
	s.doctor()
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// OpenAPI is the document of every route under /api.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }

func document(version string) huma.Config {
	c := huma.DefaultConfig("Sluice", version)
	c.Info.Description = "Drains, deletes and recreates GitLab runner VMs without cutting a job."
	c.CreateHooks = nil // no $schema links in bodies
	c.DocsPath, c.SchemasPath = "", ""
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "A token whose SHA-256 is in server.tokens. Not asked for on the Unix socket."},
	}
	c.Security = []map[string][]string{{"token": {}}}
	return c
}

// register adds an operation with the limits that hold for all of them.
func register[I, O any](s *Server, op huma.Operation, handler func(*call, *I) (*O, error)) {
	op.MaxBodyBytes = bodyLimit
	op.BodyReadTimeout = 10 * time.Second
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusInternalServerError)
	huma.Register(s.api, op, adapt(s, handler))
}

// fallback renders what echo itself refuses: no such route, body too large.
func (s *Server) fallback(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status, text := http.StatusInternalServerError, "internal error"
	var refused *echo.HTTPError
	if errors.As(err, &refused) {
		status, text = refused.Code, http.StatusText(refused.Code)
	}
	if status == http.StatusNotFound {
		text = "there is nothing at " + c.Request().Method + " " + c.Request().URL.Path
	}
	write(c, &Problem{Status: status, Title: http.StatusText(status), Detail: text, Code: codeOfStatus(status)})
}
