package app

import (
	"io"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
)

// Role is what a process does with the journal (design.md section 9).
type Role int

// The roles.
const (
	// RoleRead reads the journal. It needs no secret, takes no lock and works
	// beside an engine.
	RoleRead Role = iota
	// RoleLook also asks hosts, GitLab and the provider, and changes nothing.
	RoleLook
	// RoleWork runs the engine for the operations that this process is asked for.
	RoleWork
	// RoleServe runs the engine for everything, and the listeners.
	RoleServe
)

// works says whether the role runs the engine.
func (r Role) works() bool { return r == RoleWork || r == RoleServe }

// Options are what an App is made of.
type Options struct {
	Config  *config.Config
	Role    Role
	Command string // for whoever is refused because of it, such as "sluice serve"
	Version string
	Log     io.Writer
	// Fleets replaces the adapters that the configuration describes, by fleet
	// name: the demo's small world, and tests.
	Fleets map[string]*engine.Fleet
}

// clock is the only real clock: packages below get it injected.
type clock struct{}

// Now implements the clocks of all rooms.
func (clock) Now() time.Time { return time.Now() }
