// Command standin stands in for gitlab-runner on the test machines: installed as
// /usr/local/bin/gitlab-runner and started with `run --config FILE`, it registers a
// system_id, long-polls for jobs, runs each in a container named runner-JOBID (or as the
// docker executor names it; or in a shell, with executor = "shell"), uploads trace and
// result, and obeys signals as
// facts measured on the real one say: SIGQUIT finishes the jobs, SIGTERM ends them.
//
// It owns the runner's side of GitLab's protocol as far as Sluice can see it. It must
// not know Sluice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// version is what GitLab lists for the manager; the real one of the measurements.
const version = "19.3.0"

func main() {
	os.Exit(run(os.Args[1:]))
}

// run is main with an exit status: 0 after any shutdown that ended every job, 1 when a
// forceful one took too long or the config is useless, 2 for a wrong command line.
func run(args []string) int {
	// The handlers come first: until then SIGQUIT kills the process, as the real one.
	stop := make(chan os.Signal, 8)
	signal.Notify(stop, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGHUP)

	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if len(args) == 0 || args[0] != "run" {
		_, _ = fmt.Fprintln(os.Stderr, "usage: gitlab-runner run --config FILE")
		return 2
	}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	path := flags.String("config", "/etc/gitlab-runner/config.toml", "config file")
	for _, ignored := range []string{"working-directory", "service", "user"} {
		flags.String(ignored, "", "accepted, not used")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	config, systemID, err := load(*path)
	if err != nil {
		log.Error("cannot start", "error", err)
		return 1
	}
	log.Info("Starting multi-runner", "config", *path, "system_id", systemID, "version", version)
	return newManager(config, systemID, log).serve(stop)
}

func load(path string) (config, string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return config{}, "", err
	}
	parsed, err := parseConfig(string(text))
	if err != nil {
		return config{}, "", fmt.Errorf("%s: %w", path, err)
	}
	if parsed.Concurrent < 1 {
		return config{}, "", fmt.Errorf("%s: concurrent is %d: no jobs will be processed", path, parsed.Concurrent)
	}
	id, err := systemID(filepath.Join(filepath.Dir(path), ".runner_system_id"), "/etc/machine-id")
	return parsed, id, err
}

// errInterrupted is why a job ends when the runner is told to stop at once.
var errInterrupted = errors.New("runner interrupted")

// serve works until told to stop and yields the exit status.
func (m *manager) serve(stop <-chan os.Signal) int {
	polling, stopPolling := context.WithCancel(context.Background())
	defer stopPolling()
	working, interrupt := context.WithCancelCause(context.Background())
	defer interrupt(nil)
	done := m.start(polling, working)

	var overdue <-chan time.Time
	for {
		select {
		case sig := <-stop:
			m.log.Warn("[runWait] received stop signal", "signal", sig.String())
			stopPolling()
			if sig == syscall.SIGQUIT {
				m.log.Warn("Starting graceful shutdown, waiting for builds to finish")
				continue
			}
			m.log.Warn("Starting forceful shutdown", "timeout", m.config.ShutdownTimeout)
			interrupt(errInterrupted)
			if overdue == nil {
				overdue = time.After(m.config.ShutdownTimeout)
			}
		case <-overdue:
			m.log.Error("shutdown timed out")
			return 1
		case <-done:
			m.log.Info("All workers stopped.")
			m.log.Info("Can exit now!")
			return 0
		}
	}
}
