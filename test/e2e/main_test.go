//go:build e2e

// Package e2e_test plays Sluice's scenarios on real hosts: Debian machines with systemd,
// OpenSSH and rootless podman, a runner that obeys signals as the real one, and the
// sluice binary as a person runs it.
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// scene is the stage that all scenarios share.
var scene *stage.Stage

func TestMain(m *testing.M) {
	os.Exit(runOnStage(m))
}

func runOnStage(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	scene, err = stage.Set(ctx, stage.Options{Name: "t" + strconv.Itoa(os.Getpid()), Log: os.Stderr})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "cannot set the stage:", err)
		return 1
	}
	code := m.Run()
	if err := scene.Strike(context.Background()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "cannot strike the stage:", err)
		return 1
	}
	return code
}
