// Command sluice drains, deletes and recreates GitLab runner VMs without
// cutting a job.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // zones by name, also where the host or the image has none

	"gitlab.com/sluice-runners/sluice/internal/cli"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "dev"

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.Main(context.Background(), cli.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Signals: signals, Now: time.Now, Version: version, UID: os.Getuid(),
	}))
}
