package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/cli"
)

// Seed 77 of the worlds in real time: a SIGTERM while the tables are made.
func TestAServerThatIsToldToStopBeforeItIsReadyHasNotFailed(t *testing.T) {
	for range 5 {
		dir := t.TempDir()
		writeIdle(t, dir)
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGTERM
		var said bytes.Buffer
		status := cli.Main(context.Background(), cli.Env{
			Args: []string{"serve", "--config", filepath.Join(dir, "sluice.yaml")}, Stdin: os.Stdin, Stdout: io.Discard, Stderr: &said,
			Getenv: os.Getenv, Signals: signals, Now: time.Now, Version: "test", UID: os.Getuid(),
		})
		if status != cli.ExitDone {
			t.Errorf("status %d: %s", status, &said)
		}
	}
}
