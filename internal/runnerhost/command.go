package runnerhost

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// output is what a command on a host left.
type output struct {
	stdout, stderr []byte
	status         int // exit status; 128 + the signal if it was ended by one
}

var (
	errFlood  = errors.New("it answered with more than an answer can have")
	errNoExit = errors.New("the connection was cut before the command ended: what it did is not known")
	errDead   = errors.New("the connection was lost")
	errSlow   = errors.New("the command did not end within its time limit")
)

// run runs a command with a script on its standard input. It returns when the
// command has ended, when ctx ends, or when limit has passed; in the last case
// the peer counts as dead and the connection is closed. A command that is left
// alone by ctx keeps its place among the sessions until it has ended: so the
// host's own limit on sessions is never run into.
func (l *link) run(ctx context.Context, command, script string, limit time.Duration) (output, error) {
	select {
	case l.sessions <- struct{}{}:
	case <-ctx.Done():
		return output{}, ctx.Err()
	case <-l.done:
		return output{}, errDead
	}
	type result struct {
		out output
		err error
	}
	came := make(chan result, 1)
	slow := make(chan struct{})
	late := time.AfterFunc(limit, func() { close(slow); l.close() })
	l.wait.Go(func() {
		defer func() { <-l.sessions }()
		defer late.Stop()
		out, err := l.session(command, script)
		came <- result{out, err}
	})
	select {
	case r := <-came:
		if r.err != nil && closed(slow) {
			r.err = errSlow
		}
		return r.out, r.err
	case <-ctx.Done():
		return output{}, ctx.Err()
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// session runs one command to its end. It hangs on a dead peer until the
// connection is closed.
func (l *link) session(command, script string) (output, error) {
	s, err := l.open()
	if err != nil {
		return output{}, lost(err)
	}
	defer func() { _ = s.Close() }()
	stdout := &capped{limit: l.limits.Stdout, full: func() { _ = s.Close() }}
	stderr := &capped{limit: l.limits.Stderr}
	s.Stdout, s.Stderr = stdout, stderr
	stdin, err := s.StdinPipe()
	if err != nil {
		return output{}, lost(err)
	}
	if err := s.Start(command); err != nil {
		return output{}, lost(err)
	}
	l.wait.Go(func() { // a shell that ends without reading is seen by its status
		_, _ = io.WriteString(stdin, script)
		_ = stdin.Close()
	})
	err = s.Wait()
	out := output{stdout: stdout.bytes(), stderr: stderr.bytes()}
	exit, ended := errors.AsType[*ssh.ExitError](err)
	switch {
	case stdout.over():
		return out, errFlood
	case ended:
		out.status = exit.ExitStatus()
		return out, nil
	case err != nil:
		return out, errNoExit
	}
	return out, nil
}

// open opens a session. sshd gives the place of one that has ended back only when
// it has reaped its process: a refusal may come a moment too early.
func (l *link) open() (*ssh.Session, error) {
	const tries, pause = 20, 50 * time.Millisecond
	for n := 1; ; n++ {
		s, err := l.client.NewSession()
		if _, refused := errors.AsType[*ssh.OpenChannelError](err); !refused || n == tries {
			return s, err
		}
		select {
		case <-l.done:
			return nil, err
		case <-time.After(pause):
		}
	}
}

// lost is a session that did not come about.
func lost(err error) error {
	if open, refused := errors.AsType[*ssh.OpenChannelError](err); refused {
		return open
	}
	return errDead
}

// capped keeps the first bytes of a stream. full is called once when there are
// more; the rest is dropped.
type capped struct {
	limit int
	full  func()

	mu       sync.Mutex
	kept     bytes.Buffer
	overflow bool
}

// Write never fails: an error would stop the reading, and a command that nobody
// reads from hangs.
func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := max(c.limit-c.kept.Len(), 0)
	c.kept.Write(p[:min(room, len(p))])
	if len(p) > room && !c.overflow {
		c.overflow = true
		if c.full != nil {
			c.full()
		}
	}
	return len(p), nil
}

func (c *capped) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.kept.Bytes())
}

func (c *capped) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overflow
}
