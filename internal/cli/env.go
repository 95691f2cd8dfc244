package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/config"
)

// Env is everything a command takes from the world around it.
type Env struct {
	Args    []string // without the program's name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Signals <-chan os.Signal // SIGINT and SIGTERM
	Now     func() time.Time
	Version string
	UID     int
	Engine  Engine
	Demo    Demo
}

// Role is what a command needs of the process that it runs in.
type Role int

// The roles.
const (
	RoleRead  Role = iota // read the journal, without the engine
	RoleLook              // and ask hosts, GitLab and the provider
	RoleWork              // run the engine for one's own operations
	RoleServe             // run the engine and the listeners
)

// Engine starts Sluice in this process (package app).
type Engine interface {
	Open(ctx context.Context, c *config.Config, role Role, command string, log io.Writer) (Instance, error)
}

// Instance is Sluice in this process.
type Instance interface {
	// Handler is the API.
	Handler() http.Handler
	// Serve listens until ctx ends.
	Serve(ctx context.Context) error
	// Close ends the engine; operations stay as they are.
	Close() error
}

// Demo runs the small world (package sim).
type Demo interface {
	Run(ctx context.Context, o DemoOptions) error
}

// DemoOptions are the demo's flags.
type DemoOptions struct {
	Once     bool
	Sabotage string
	JSON     bool
	Out      io.Writer
	Err      io.Writer
	Colour   bool
}
