//go:build e2e

// Package e2e_test plays Sluice's scenarios on real hosts: Debian machines with systemd,
// OpenSSH and rootless podman, a runner that obeys signals as the real one, and the
// sluice binary as a person runs it.
package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// programs is where this run's binaries are; its directory is a world without machines,
// so that a later run sweeps it should this one be killed.
var programs string

func TestMain(m *testing.M) {
	os.Exit(onStage(m))
}

func onStage(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := stage.CheckHost(ctx, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "this host cannot boot machines:", err)
		return 1
	}
	home, err := stage.Set(ctx, stage.Options{Name: nextWorld(), Log: os.Stderr})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "cannot set the stage:", err)
		return 1
	}
	programs = filepath.Dir(home.Program("sluice"))
	code := runScenarios(m)
	if err := home.Strike(context.Background()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "cannot strike the stage:", err)
		return 1
	}
	return code
}

// sideBySide is how many scenarios run at once: they wait far more than they work.
const sideBySide = "5"

func runScenarios(m *testing.M) int {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", sideBySide)
	}
	code := m.Run()
	reportGaps(os.Stderr)
	return code
}

var worlds atomic.Int64

// nextWorld names a world of this process.
func nextWorld() string {
	return "t" + strconv.FormatInt(int64(os.Getpid()), 36) + "w" + strconv.FormatInt(worlds.Add(1), 36)
}
