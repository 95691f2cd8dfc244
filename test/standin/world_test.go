package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// asRunner makes the test binary be the stand-in: signals need a process of its own.
const asRunner = "STANDIN_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asRunner) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// world is a GitLab with one stand-in, whose jobs are shells of this host.
type world struct {
	gitlab *simgitlab.Server
	runner *exec.Cmd
	exit   chan error
	config string
	log    *logged
}

// logged keeps what the stand-in logs.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) has(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), line)
}

func newWorld(t *testing.T, concurrent int) *world {
	t.Helper()
	gitlab := simgitlab.New(simgitlab.Config{Now: time.Now, LongPoll: time.Minute})
	server := httptest.NewServer(gitlab)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	w := &world{gitlab: gitlab, config: filepath.Join(t.TempDir(), "config.toml")}
	text := fmt.Sprintf("concurrent = %d\ncheck_interval = 1\n[[runners]]\n  url = %q\n  token = %q\n  executor = \"shell\"\n",
		concurrent, server.URL, simgitlab.DefaultRunnerToken)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	return w
}

func (w *world) start(t *testing.T) {
	t.Helper()
	w.runner = exec.Command(os.Args[0], "run", "--config", w.config)
	w.runner.Env = append(os.Environ(), asRunner+"=1")
	w.log = &logged{}
	w.runner.Stderr = w.log
	if err := w.runner.Start(); err != nil {
		t.Fatal(err)
	}
	w.exit = make(chan error, 1)
	go func() { w.exit <- w.runner.Wait() }()
	t.Cleanup(func() { _ = w.runner.Process.Kill() })
	poll(t, "the first poll", func() bool { return w.gitlab.Counts()["POST /jobs/request"] > 0 })
}

func (w *world) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := w.runner.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// exitStatus waits for the stand-in's end.
func (w *world) exitStatus(t *testing.T, limit time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	select {
	case err := <-w.exit:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 0
	case <-ctx.Done():
		t.Fatalf("the stand-in still runs after %s", limit)
		return 0
	}
}

// job queues a job and waits until its answer has arrived: a signal before that cuts the
// request and orphans the job.
func (w *world) job(t *testing.T, spec simgitlab.JobSpec) int64 {
	t.Helper()
	id := w.gitlab.Enqueue(spec)
	poll(t, "the job to begin", func() bool { return w.log.has(fmt.Sprintf("received\" job=%d", id)) })
	return id
}

func (w *world) record(id int64) simgitlab.JobRecord {
	record, _ := w.gitlab.Job(id)
	return record
}

func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
