// Command e2e runs the cloud of the end-to-end tests by hand: it prepares the host,
// brings a world with a GitLab and two machines up for people, and takes it down.
//
// Inside a world it also is each machine's power supply (supervise) and the commands of
// the exec provider.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

type verb struct {
	name string
	help string
	run  func(ctx context.Context, args []string) error
}

// verbs are the commands.
func verbs() []verb {
	return []verb{
		{"setup", "install what is missing on this host and make the golden tree", setup},
		{"up", "leave a GitLab and two machines standing", up},
		{"down", "end the standing world, and what killed runs left", down},
		{"machine", machineUsage, machine},
		{"ssh", "WORLD [USER@]NAME [COMMAND…]: log in to a machine (users: fedora, ops)", login},
		{"provider", "WORLD: the commands of the exec provider, request on stdin", provider},
		{"supervise", "WORLD ID: keep a machine on (started by create)", supervise},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, v := range verbs() {
		if len(os.Args) > 1 && os.Args[1] == v.name {
			if err := v.run(ctx, os.Args[2:]); err != nil {
				_, _ = fmt.Fprintln(os.Stderr, "e2e "+v.name+":", err)
				os.Exit(1)
			}
			return
		}
	}
	_, _ = fmt.Fprintln(os.Stderr, "usage: e2e VERB …")
	for _, v := range verbs() {
		_, _ = fmt.Fprintf(os.Stderr, "  %-9s %s\n", v.name, v.help)
	}
	os.Exit(2)
}
