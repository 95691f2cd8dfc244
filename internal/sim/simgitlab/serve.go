package simgitlab

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Serve serves s on ln until ctx ends, then closes every connection, held ones
// included. It owns ln. It returns nil after a normal end.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	hs := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = hs.Close() })
	defer stop()
	if err := hs.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
