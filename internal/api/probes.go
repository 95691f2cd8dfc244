package api

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// probes are the routes for machines: alive, ready, metrics. They need no
// token; /metrics names fleets, so keep the listener where Prometheus is.
func (s *Server) probes() {
	s.echo.GET("/livez", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	s.echo.GET("/readyz", func(c echo.Context) error {
		if s.Ready != nil {
			if err := s.Ready(c.Request().Context()); err != nil {
				return c.String(http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
			}
		}
		return c.String(http.StatusOK, "ok\n")
	})
	if s.Metrics != nil {
		s.echo.GET("/metrics", echo.WrapHandler(s.Metrics))
	}
}
