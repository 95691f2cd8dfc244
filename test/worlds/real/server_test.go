package real

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopLimit is how long a server that was told to end may take for it.
const stopLimit = 30 * time.Second

// server is `sluice serve`, one process after another on one journal.
type server struct {
	w            *world
	path, config string

	mu    sync.Mutex
	cmd   *exec.Cmd // nil = none runs
	ended chan struct{}
	kills int

	output lockedBuffer
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (s *server) log() string {
	s.output.mu.Lock()
	defer s.output.mu.Unlock()
	return s.output.text.String()
}

// start starts the next life.
func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
}

func (s *server) begin() {
	cmd := exec.Command(s.path, "serve", "--config", s.config)
	cmd.Env = append(os.Environ(), "TMPDIR="+s.w.dir, "SLUICE_LOG_LEVEL=info")
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	if err := cmd.Start(); err != nil {
		s.w.violation("ends", "the server does not start: %s", err)
		return
	}
	s.w.say("sluice  starts")
	fmt.Fprintf(&s.output, "=== %.3f process %d\n", time.Since(s.w.began).Seconds(), cmd.Process.Pid)
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // killed, mostly
		close(ended)
	}()
}

// kill is kill -9.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed()
}

func (s *server) killed() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
	s.cmd = nil
}

// replaced kills it, and starts another a moment later.
func (s *server) replaced(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.died()
	s.w.say("sluice  IS KILLED")
	s.kills++
	s.killed()
	s.w.pause(after)
	s.begin()
}

// restarted ends it politely, and starts another a moment later.
func (s *server) restarted(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt()
	s.w.pause(after)
	s.begin()
}

// stop ends it politely, for good.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt()
}

// halt is SIGTERM. It ends the process soon, whatever it is at, with status 0.
func (s *server) halt() {
	if s.cmd == nil {
		return
	}
	s.died()
	s.w.say("sluice  is told to stop")
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-s.ended:
		if status := s.cmd.ProcessState.ExitCode(); status != 0 && !s.new() {
			s.w.violation("ends", "the server ended with status %d", status)
		}
	case <-time.After(stopLimit):
		s.w.violation("ends", "the server was told to stop and did not in %s", stopLimit)
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	s.cmd = nil
}

// new says whether the present process may not have got as far as to listen to
// signals: it has said nothing yet.
func (s *server) new() bool {
	log := s.log()
	return strings.Count(log[strings.LastIndex(log, "=== "):], "\n") == 1
}

// died notes a server that nobody has ended.
func (s *server) died() {
	if s.cmd == nil {
		return
	}
	select {
	case <-s.ended:
		s.w.violation("ends", "the server ended by itself: %s", s.cmd.ProcessState)
	default:
	}
}
