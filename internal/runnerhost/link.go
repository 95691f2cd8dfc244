package runnerhost

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// link is one logged-in connection. It is closed by its owner, by the peer, or
// by its own keepalive; whichever it is, done is closed then.
type link struct {
	client   *ssh.Client
	conn     net.Conn
	limits   Limits
	sessions chan struct{} // one for each that is open
	wait     *sync.WaitGroup
	done     chan struct{}
	once     sync.Once
}

// connect dials, shakes hands and logs in. The library has no deadlines of its
// own: when ours passes the stream is closed, which ends any call on it.
func (h *Hosts) connect(ctx context.Context, t engine.Target) (*link, error) {
	check, err := newKeyCheck(ctx, h.o.HostKeys, h.o.Keys, t)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, h.o.Limits.Connect)
	defer cancel()
	conn, err := h.o.Dial(limited, t)
	if err != nil {
		return nil, unreachable(t, "connecting", err)
	}
	stop := context.AfterFunc(limited, func() { _ = conn.Close() })
	client, err := h.login(conn, t, check)
	if !stop() && err == nil { // the time ran out at the very end
		err = context.DeadlineExceeded
	}
	if err == nil {
		err = check.remember(ctx, h.o.Keys)
	}
	if err != nil {
		_ = conn.Close()
		return nil, handshakeFailed(t, h.o.Settings.User, check, limited.Err(), err)
	}
	return h.newLink(client, conn, t), nil
}

// login runs the SSH handshake. The name that the library is given must have
// the form host:port with no other colon, which an IPv6 address has not.
func (h *Hosts) login(conn net.Conn, t engine.Target, check *keyCheck) (*ssh.Client, error) {
	config := &ssh.ClientConfig{
		User:              h.o.Settings.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(h.o.Signers...)},
		HostKeyCallback:   check.callback,
		HostKeyAlgorithms: check.algorithms(),
		ClientVersion:     "SSH-2.0-sluice",
	}
	c, chans, reqs, err := ssh.NewClientConn(conn, t.VM+"."+t.Fleet+":22", config)
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, chans, reqs), nil
}

// handshakeFailed sorts out why: another key, a login that was refused, or a
// peer that did not answer.
func handshakeFailed(t engine.Target, user string, check *keyCheck, timedOut, err error) error {
	if own, ok := errors.AsType[*fleet.Error](err); ok {
		return own
	}
	if check.refusal != nil {
		return check.refusal
	}
	if timedOut != nil {
		return unreachable(t, "the SSH handshake", timedOut)
	}
	if choice, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok {
		if len(check.pinned) > 0 && check.shown == nil {
			return check.wrongKey("has no key of the pinned type (" + choice.Error() + ")")
		}
	}
	if _, network := errors.AsType[net.Error](err); network || errors.Is(err, io.EOF) || check.shown == nil {
		return unreachable(t, "the SSH handshake", err)
	}
	return fleet.Errorf(fleet.CodeForbidden, "%s: the host at %s refuses the login of %s: %w", t.Ref, t.Address, user, err).
		WithHint("see that the public key of host.key is in %s's authorized_keys, and that host.user is right", user)
}

// unreachable is a host that could not be asked.
func unreachable(t engine.Target, during string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fleet.Errorf(fleet.CodeUnavailable, "%s: the host at %s did not answer in time (%s): %w", t.Ref, t.Address, during, err)
	}
	if errors.Is(err, context.Canceled) {
		return fleet.Errorf(fleet.CodeCanceled, "%s: %s was canceled: %w", t.Ref, during, err)
	}
	return fleet.Errorf(fleet.CodeUnavailable, "%s: the host at %s cannot be reached (%s): %w", t.Ref, t.Address, during, err)
}

func (h *Hosts) newLink(client *ssh.Client, conn net.Conn, t engine.Target) *link {
	l := &link{
		client: client, conn: conn, limits: h.o.Limits,
		sessions: make(chan struct{}, h.o.Limits.Sessions), done: make(chan struct{}),
		wait: &h.wait,
	}
	log := h.log.With("fleet", t.Fleet, "vm", t.VM, "instance", t.Instance)
	log.Debug("connected to the host", "address", t.Address)
	h.wait.Go(func() {
		_ = client.Wait() // why it ended is told by whoever was using it
		l.close()
	})
	h.wait.Go(func() {
		if !l.keepalive() {
			log.Warn("the host stopped answering: connection closed", "address", t.Address)
		}
	})
	return l
}

// keepalive asks the peer now and then whether it is there. OpenSSH answers no,
// and any answer will do. It yields false if an answer was due and did not come.
func (l *link) keepalive() bool {
	tick := time.NewTicker(l.limits.KeepaliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return true
		case <-tick.C:
		}
		if !l.answers() {
			return false
		}
	}
}

// answers asks once. The call hangs on a dead peer until the stream is closed.
func (l *link) answers() bool {
	late := time.AfterFunc(l.limits.KeepaliveReply, l.close)
	_, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil)
	return late.Stop() || err == nil
}

// close closes the stream itself: closing the SSH connection first could block
// on a dead peer. done comes first: whoever's call ends with the stream finds the
// link dead.
func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.conn.Close()
	})
}

func (l *link) dead() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
