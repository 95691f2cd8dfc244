package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// shutdownLimit is how long open requests may take when the server ends.
const shutdownLimit = 5 * time.Second

// Serve listens on the socket and, if configured, on TCP until ctx ends.
// Errors: CodeInvalid or CodeConflict if it cannot listen.
func (a *App) Serve(ctx context.Context) error {
	socket, err := listenSocket(ctx, a.Config.Server.Socket)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	a.serveOn(ctx, group, socket, peer)
	if address := a.Config.Server.Listen; address != "" {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return errors.Join(fleet.Errorf(fleet.CodeInvalid, "server.listen: %w", err).
				WithHint("is the port in use? `ss -ltnp` says by whom"), socket.Close())
		}
		a.serveOn(ctx, group, listener, nil)
		a.log.InfoContext(ctx, "listening", "address", listener.Addr().String())
	}
	a.log.InfoContext(ctx, "ready", "socket", a.Config.Server.Socket, "fleets", len(a.specs), "after", time.Since(a.began).Round(time.Millisecond))
	return group.Wait()
}

// serveOn serves one listener. who, if given, says who is behind a connection.
func (a *App) serveOn(ctx context.Context, group *errgroup.Group, listener net.Listener, who func(context.Context, net.Conn) context.Context) {
	server := &http.Server{
		Handler: a.front(), ConnContext: who, MaxHeaderBytes: 32 << 10,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
	}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			return server.Close() // a long poll is no reason to wait longer
		}
		return nil
	})
}

// listenSocket opens the Unix socket, mode 0600 from its first moment. The
// caller holds the engine lock, so a socket that lies there is a dead one's.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fleet.Errorf(fleet.CodeForbidden, "server.socket: %w", err)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fleet.Errorf(fleet.CodeConflict, "server.socket: %s exists and is no socket", path).WithHint("remove it, or set server.socket to another path")
		}
		if err := os.Remove(path); err != nil {
			return nil, fleet.Errorf(fleet.CodeForbidden, "server.socket: the old socket cannot be removed: %w", err)
		}
	}
	mask := syscall.Umask(0o177)
	defer syscall.Umask(mask)
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "server.socket: %w", err).WithHint("set server.socket to a path in a directory that exists and can be written")
	}
	return listener, nil
}

// peer names the user behind a Unix connection (unix(7), SO_PEERCRED). Who
// could open the socket may do everything: its mode is its authority.
func peer(ctx context.Context, conn net.Conn) context.Context {
	by := fleet.Actor{Name: "local", From: "socket"}
	if c, ok := conn.(*net.UnixConn); ok {
		if uid, ok := peerUID(c); ok {
			by.Name = "local:" + strconv.FormatUint(uint64(uid), 10)
		}
	}
	return api.WithCaller(ctx, by)
}

func peerUID(c *net.UnixConn) (uint32, bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var credentials *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		credentials, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) //nolint:gosec // a descriptor fits an int
	}); err != nil || asked != nil {
		return 0, false
	}
	return credentials.Uid, true
}
