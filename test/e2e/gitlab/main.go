// Command gitlab serves the simulated GitLab to a world of test machines: the only
// GitLab they know. Its control API under /sim is open to whoever reaches it.
package main

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	hold := flag.Duration("long-poll", 50*time.Second, "how long a job request is held")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", *listen)
	if err != nil {
		slog.Error("cannot listen", "address", *listen, "error", err)
		os.Exit(1)
	}
	slog.Info("GitLab is up", "address", listener.Addr().String())
	server := simgitlab.New(simgitlab.Config{Now: time.Now, LongPoll: *hold})
	if err := server.Serve(ctx, listener); err != nil {
		slog.Error("serving ended", "error", err)
		os.Exit(1)
	}
}
