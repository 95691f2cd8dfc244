package simhost

import (
	"cmp"
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simrunner"
)

// Options say what a host is. Clock, AuthorizedKey, GitLabURL and Token are
// required.
type Options struct {
	Name          string
	Clock         simclock.Clock
	Random        io.Reader // machine id, boot ids, host key; nil: crypto/rand
	Log           *slog.Logger
	AuthorizedKey ssh.PublicKey // of the login user

	User       string // login user; default fedora
	RunnerUser string // default: User
	Unit       string // default gitlab-runner.service
	UnitPath   string // where the unit lies; default /etc/systemd/system/UNIT
	ConfigPath string // default /etc/gitlab-runner/config.toml

	GitLabURL string
	Token     string
	RunnerID  int64 // GitLab's id of the runner entry, in config.toml; default 4711
	// TokenExpiresAt stands in config.toml; zero = never, which gitlab-runner
	// writes as year 1.
	TokenExpiresAt time.Time
	Concurrent     int    // default 1
	UnitText       string // the whole unit file; empty: as on Fedora
	RestartSec     string // of the default unit file; default 5
	SystemID       string // that the image has baked into its .runner_system_id; default: none
	MachineID      string // default: a new one
	Executor       string // custom (default) or shell
	// ClockOff is how far its clock is ahead of the world's. It is seen by who
	// asks the host for the time, and in the ages of containers not at all.
	ClockOff time.Duration

	Timing     simrunner.Timing // zero: as measured
	Hold       func() bool      // see simrunner.Options; may be nil
	BootDelay  time.Duration    // from power on to sshd and units
	ReloadTime time.Duration    // what daemon-reload takes
	// Sudoers is the text of a sudoers file that says what User may do. Empty:
	// everything, without a password.
	Sudoers string
}

func (o Options) withDefaults() Options {
	o.Random = cmp.Or[io.Reader](o.Random, rand.Reader)
	o.User = cmp.Or(o.User, "fedora")
	o.RunnerID = cmp.Or(o.RunnerID, 4711)
	o.RunnerUser = cmp.Or(o.RunnerUser, o.User)
	o.Unit = cmp.Or(o.Unit, "gitlab-runner.service")
	o.UnitPath = cmp.Or(o.UnitPath, "/etc/systemd/system/"+o.Unit)
	o.ConfigPath = cmp.Or(o.ConfigPath, "/etc/gitlab-runner/config.toml")
	o.Concurrent = cmp.Or(o.Concurrent, 1)
	o.RestartSec = cmp.Or(o.RestartSec, "5")
	o.Executor = cmp.Or(o.Executor, "custom")
	if o.Timing == (simrunner.Timing{}) {
		o.Timing = simrunner.Measured()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
