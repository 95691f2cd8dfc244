//go:build e2e

package e2e_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The exit statuses of the command line (design.md section 11).
const (
	exitDone    = 0
	exitFailed  = 1
	exitJobCut  = 3
	exitRefused = 4
)

// command is the sluice binary at work.
type command struct {
	scene *scene
	cmd   *exec.Cmd
	out   *output
	done  chan struct{}
	code  int
	took  time.Duration
}

// output collects what a command says, while it says it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts sluice with the scene's config, inside the cloud's network as a
// controller's host would be.
func (s *scene) start(args ...string) *command {
	s.t.Helper()
	argv := s.World.InCloud(append([]string{s.Program("sluice"), "--config", s.config}, args...)...)
	c := &command{scene: s, out: &output{}, done: make(chan struct{})}
	c.cmd = exec.CommandContext(s.ctx, argv[0], argv[1:]...)
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	c.cmd.Env = append(os.Environ(), "NO_COLOR=1")
	c.cmd.WaitDelay = time.Second
	began := time.Now()
	if err := c.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		err := c.cmd.Wait()
		c.took = time.Since(began)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			c.code = exit.ExitCode()
		} else if err != nil {
			c.code = -1
		}
	}()
	s.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.done
		if s.t.Failed() {
			s.t.Logf("sluice %s: exit %d after %s\n%s", strings.Join(args, " "), c.code, c.took.Round(time.Millisecond), c.out)
		}
	})
	return c
}

// wait waits for the command's end and checks its exit status.
func (c *command) wait(limit time.Duration, status int) string {
	c.scene.t.Helper()
	select {
	case <-c.done:
	case <-contextFor(c.scene.t, limit).Done():
		c.scene.t.Fatalf("sluice still runs after %s; so far:\n%s", limit, c.out)
	}
	if c.code != status {
		c.scene.t.Errorf("exit status %d, want %d:\n%s", c.code, status, c.out)
	}
	return c.out.String()
}

// noLinger keeps a command from staying for the watch for orphaned jobs.
const noLinger = "--linger=0s"

// running says whether the command has not ended yet.
func (c *command) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// kill ends the command as a power cut would.
func (c *command) kill() {
	_ = c.cmd.Process.Signal(syscall.SIGKILL)
	<-c.done
}

// sluice runs a command to its end, at most a minute.
func (s *scene) sluice(status int, args ...string) string {
	s.t.Helper()
	return s.start(args...).wait(time.Minute, status)
}

// mustMention fails unless every part is in the text.
func (s *scene) mustMention(text string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.t.Errorf("%q is not mentioned in:\n%s", part, text)
		}
	}
}

// awaitSaid asks until the answer mentions part, and yields that answer.
func (s *scene) awaitSaid(limit time.Duration, part string, args ...string) string {
	s.t.Helper()
	said := ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("sluice %s said last:\n%s", strings.Join(args, " "), said)
		}
	}()
	s.await(limit, "`sluice "+strings.Join(args, " ")+"` to mention "+part, func() (bool, error) {
		said = s.answer(args...)
		return strings.Contains(said, part), nil
	})
	return said
}

// answer runs a command that only asks, and yields what it says. As it may be asked again
// and again, a failed test does not print it.
func (s *scene) answer(args ...string) string {
	s.t.Helper()
	argv := s.World.InCloud(append([]string{s.Program("sluice"), "--config", s.config}, args...)...)
	cmd := exec.CommandContext(s.ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return string(out)
}

// serve starts the server and waits until its socket answers.
func (s *scene) serve() *command {
	s.t.Helper()
	server := s.start("serve")
	socket := filepath.Join(filepath.Dir(s.config), "sluice.sock")
	s.await(20*time.Second, "the server's socket", func() (bool, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(s.ctx, "unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil, nil
	})
	return server
}
