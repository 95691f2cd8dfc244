package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// session is one connection to Sluice: a server's, or this process's own.
type session struct {
	*client.Client
	own *app.App // nil beside a server
}

// alone says whether this process is Sluice.
func (s *session) alone() bool { return s.own != nil }

// Close ends Sluice in this process, if it is there.
func (s *session) Close() {
	if s.own != nil {
		_ = s.own.Close() // what was committed stays
	}
}

// connect finds Sluice (design.md section 9): the server named, else the
// server whose socket answers, else Sluice in this process.
func (p *program) connect(ctx context.Context, role app.Role, command string) (*session, error) {
	server := p.server
	if server == "" {
		server = p.Getenv("SLUICE_SERVER")
	}
	if server != "" {
		c, err := client.New(client.Options{URL: server, Token: p.Getenv("SLUICE_TOKEN")})
		if err != nil {
			return nil, usage(err)
		}
		return &session{Client: c}, nil
	}
	c, err := p.load()
	if err != nil {
		return nil, err
	}
	if answers(ctx, c.Server.Socket) {
		over, err := client.New(client.Options{Socket: c.Server.Socket})
		return &session{Client: over}, err
	}
	return p.inProcess(ctx, c, role, command)
}

func (p *program) inProcess(ctx context.Context, c *config.Config, role app.Role, command string) (*session, error) {
	own, err := app.Open(ctx, app.Options{Config: c, Role: role, Command: command, Version: p.Version, Log: p.Stderr})
	if err != nil {
		return nil, err
	}
	by := fleet.Actor{Name: "local:" + strconv.Itoa(p.UID), From: "cli"}
	in, err := client.New(client.Options{Handler: own.Handler(), By: by})
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	p.idle = own.Idle
	return &session{Client: in, own: own}, nil
}

// answers says whether a server listens on the socket.
func answers(ctx context.Context, socket string) bool {
	if socket == "" {
		return false
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// leftovers names the unfinished operations that this process does not work
// on, all but one: they stand still until somebody resumes them.
func (p *program) leftovers(ctx context.Context, s *session, but string) error {
	list, err := s.Operations(ctx, client.ListOperationsParams{Unfinished: new(true), Limit: new(int64(1000))})
	if err != nil {
		return err
	}
	for _, op := range list.Operations {
		if op.Id == but {
			continue
		}
		fmt.Fprintf(p.Stderr, "sluice: %s/%s: %s from before is unfinished (%s, %s) and stands still: `sluice op resume %s` goes on with it\n",
			op.Fleet, op.Vm, op.Id, op.Kind, op.Phase, op.Id)
	}
	return nil
}
