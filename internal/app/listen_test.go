package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// docs/threats.md: 32 KiB of headers.
func TestMoreThan32KiBOfHeadersAreRefused(t *testing.T) {
	c, fleets := settings(t)
	address := listening(t, c, fleets)
	// net/http allows 4 KiB beyond the limit (http.Server.MaxHeaderBytes).
	for size, want := range map[int]int{30 << 10: http.StatusOK, 37 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		// Refused in the middle of it, the rest may not be taken any more.
		_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: sluice\r\nConnection: close\r\nX-Much: "+strings.Repeat("x", size)+"\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%d bytes of headers: %v", size, err)
		}
		if _ = response.Body.Close(); response.StatusCode != want {
			t.Errorf("%d bytes of headers: %s", size, response.Status)
		}
		_ = conn.Close()
	}
}

// pipes is a listener without sockets, for synctest.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.ended) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// docs/threats.md: time limits on all of it. Who is slower than that, or stays
// and says nothing, is cut off.
func TestNobodyHoldsAConnectionLongerThanItsTime(t *testing.T) {
	const (
		head = "POST /livez HTTP/1.1\r\nHost: sluice\r\n"
		live = "GET /livez HTTP/1.1\r\nHost: sluice\r\n\r\n"
	)
	for name, c := range map[string]struct {
		sends string
		reads bool // at once; else it takes nothing until its time is up
		limit time.Duration
	}{
		"headers that do not end":  {sends: head, reads: true, limit: 5 * time.Second},
		"a body that does not end": {sends: head + "Content-Length: 100\r\n\r\n{", reads: true, limit: 30 * time.Second},
		"nothing more to ask":      {sends: live, reads: true, limit: 2 * time.Minute},
		"an answer not taken":      {sends: live, limit: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group, ctx := errgroup.WithContext(t.Context())
				ctx, stop := context.WithCancel(ctx)
				listener := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
				a := &App{server: api.New(api.Options{Clock: clock{}, Log: slog.New(slog.DiscardHandler), Version: "test"})}
				a.serveOn(ctx, group, listener, func(ctx context.Context, _ net.Conn) context.Context {
					return api.WithCaller(ctx, fleet.Actor{Name: "somebody"})
				})
				here, there := net.Pipe()
				listener.conns <- there
				began := time.Now()
				if _, err := io.WriteString(here, c.sends); err != nil {
					t.Fatal(err)
				}
				if !c.reads {
					<-time.After(c.limit + time.Millisecond)
				}
				got, err := io.ReadAll(here)
				if took := time.Since(began); took < c.limit || took > c.limit+time.Second || err != nil {
					t.Errorf("it was held for %s (%v), with the answer %q", took, err, got)
				}
				if !c.reads && len(got) > 0 {
					t.Errorf("it was kept for the caller: %q", got)
				}
				stop()
				if err := group.Wait(); err != nil && !errors.Is(err, net.ErrClosed) {
					t.Errorf("the server's end: %v", err)
				}
			})
		})
	}
}
