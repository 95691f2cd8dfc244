package simhost

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// server is a host's sshd: one address for the host's whole life, open while
// the host is up.
type server struct {
	h       *Host
	address string

	mu    sync.Mutex
	ln    net.Listener
	conns map[net.Conn]bool
	dead  bool
}

// newServer finds an address for the host. It is one of the loopback network's
// many, so that nobody else gets it while the host is down.
func newServer(h *Host) (*server, error) {
	own := make([]byte, 3)
	if _, err := io.ReadFull(h.o.Random, own); err != nil {
		return nil, fmt.Errorf("host %s: an address: %w", h.o.Name, err)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+own[0]%254, own[1], 1+own[2]%254))
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", h.o.Name, err)
	}
	s := &server{h: h, address: ln.Addr().String(), conns: map[net.Conn]bool{}}
	return s, ln.Close()
}

// reopenTries and reopenPause bound the wait for the port, should somebody's
// outgoing connection have it for a moment.
const (
	reopenTries = 100
	reopenPause = 20 * time.Millisecond
)

// open listens on the host's address, if that boot still runs.
func (s *server) open(b *boot) {
	var lc net.ListenConfig
	for try := 0; ; try++ {
		s.mu.Lock()
		if s.dead || s.ln != nil || s.h.running() != b {
			s.mu.Unlock()
			return
		}
		ln, err := lc.Listen(context.Background(), "tcp", s.address)
		if err == nil {
			s.ln = ln
			s.h.wait.Add(1)
			go s.accept(ln)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if try == reopenTries {
			s.h.o.Log.Error("a simulated host lost its port", "vm", s.h.o.Name, "address", s.address, "error", err)
			return
		}
		simclock.Sleep(context.Background(), s.h.o.Clock, reopenPause)
	}
}

// close refuses connections and cuts those there are.
func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln != nil {
		_ = s.ln.Close()
		s.ln = nil
	}
	for c := range s.conns {
		_ = c.Close()
	}
}

func (s *server) destroy() {
	s.h.Thaw()
	s.mu.Lock()
	s.dead = true
	s.mu.Unlock()
	s.close()
}

func (s *server) accept(ln net.Listener) {
	defer s.h.wait.Done()
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.ln != ln {
			s.mu.Unlock()
			_ = c.Close()
			return
		}
		s.conns[c] = true
		s.h.wait.Add(1)
		s.mu.Unlock()
		go func() {
			defer s.h.wait.Done()
			s.serve(&frozen{Conn: c, f: &s.h.faults})
			_ = c.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, c)
		}()
	}
}

var errNotWelcome = errors.New("permission denied (publickey)")

func (s *server) config() *ssh.ServerConfig {
	o := s.h.o
	cfg := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-OpenSSH_10.0",
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if c.User() != o.User || !bytes.Equal(key.Marshal(), o.AuthorizedKey.Marshal()) {
				return nil, errNotWelcome
			}
			return &ssh.Permissions{}, nil
		},
	}
	s.h.faults.mu.Lock()
	defer s.h.faults.mu.Unlock()
	if s.h.faults.wrong != nil {
		cfg.AddHostKey(s.h.faults.wrong)
	} else {
		cfg.AddHostKey(s.h.signer)
	}
	return cfg
}

func (s *server) serve(c net.Conn) {
	conn, channels, requests, err := ssh.NewServerConn(c, s.config())
	if err != nil {
		return
	}
	var sessions sync.WaitGroup
	sessions.Go(func() { keepalives(requests) })
	for nc := range channels {
		if nc.ChannelType() != "session" {
			_ = nc.Reject(ssh.UnknownChannelType, "only sessions are served")
			continue
		}
		ch, reqs, err := nc.Accept()
		if err != nil {
			continue
		}
		// Not waited for: what runs goes on when its connection is gone.
		s.h.wait.Add(1)
		go func() {
			defer s.h.wait.Done()
			s.session(conn, ch, reqs)
		}()
	}
	_ = conn.Wait()
	sessions.Wait()
}

// keepalives are answered with a failure, as OpenSSH does.
func keepalives(requests <-chan *ssh.Request) {
	for r := range requests {
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
}

// session runs one command.
func (s *server) session(conn ssh.Conn, ch ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = ch.Close() }()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(r.Type == "env" || r.Type == "keepalive@openssh.com", nil)
			continue
		}
		var command struct{ Text string }
		if ssh.Unmarshal(r.Payload, &command) != nil {
			_ = r.Reply(false, nil)
			return
		}
		_ = r.Reply(true, nil)
		s.h.wait.Add(1)
		go func() {
			defer s.h.wait.Done()
			keepalives(requests)
		}()
		code := s.command(conn, ch, command.Text)
		_, _ = ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(code)&255)) //nolint:gosec // a status is a byte
		return
	}
}

func (s *server) command(conn ssh.Conn, ch ssh.Channel, text string) int {
	b := s.h.running()
	if b == nil {
		return 255
	}
	s.h.faults.mu.Lock()
	slow, banner := s.h.faults.slow, s.h.faults.banner
	s.h.faults.mu.Unlock()
	if !simclock.Sleep(b.ctx, s.h.o.Clock, slow) {
		return 255
	}
	out := &output{w: ch, cut: s.h.faults.takeCut(), conn: conn}
	_, _ = io.WriteString(out, banner)
	c := &call{
		h: s.h, b: b, user: s.h.o.User, dir: "/home/" + s.h.o.User, env: s.h.environ(s.h.o.User),
		args: []string{"-c", text}, in: ch, out: out, err: &output{w: ch.Stderr()},
	}
	pipe, done := pipeFrom(ch)
	defer done()
	c.in = pipe
	return c.exec(b.ctx, "sh")
}
