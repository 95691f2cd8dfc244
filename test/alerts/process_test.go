//go:build alerts

package alerts

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program yields the path of a Debian program that the suite cannot do without.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: apt-get install prometheus prometheus-alertmanager (or run .ci/setup)", name)
	}
	return path
}

// check runs a program to its end and fails with what it said.
func check(t *testing.T, name string, args ...string) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), program(t, name), args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, text)
	}
}

// output is what a process or a server has written so far.
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

var _ io.Writer = (*output)(nil)

// address awaits the address that was really bound to and yields it.
func (o *output) address(t *testing.T, pattern string) string {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	var found []string
	await(t, "an address in the log", func() bool {
		found = expression.FindStringSubmatch(o.String())
		return found != nil
	})
	return found[1]
}

// killGrace is how long a process may take to end when told to.
const killGrace = 10 * time.Second

// listening matches the line with which Prometheus' programs say where they are.
const listening = `msg="Listening on" address=(\S+)`

// run starts a process that the test's end ends, and yields its log.
func run(t *testing.T, name string, args ...string) *output {
	t.Helper()
	log := &output{}
	cmd := exec.Command(program(t, name), args...) //nolint:gosec,noctx // ended below, gently
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // ended by a signal, that is an error of its own
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(killGrace):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", name, log)
		}
	})
	return log
}

// patience bounds every wait: the machine may be busy with other suites.
const patience = 90 * time.Second

// await polls until holds says so.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(20 * time.Millisecond); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain for %s", patience, what)
		}
	}
}
