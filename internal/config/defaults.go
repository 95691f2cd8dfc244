package config

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// fill sets what was left out. A test compares it with the schema's defaults.
func (c *Config) fill() {
	set(&c.GitLab.URL, "https://gitlab.com")
	c.GitLab.URL = strings.TrimRight(c.GitLab.URL, "/")
	set(&c.Store.SQLite, defaultDatabase())
	if absolute, err := filepath.Abs(c.Store.SQLite); err == nil {
		c.Store.SQLite = absolute
	}
	set(&c.Server.Socket, strings.TrimSuffix(c.Store.SQLite, ".db")+".sock")
	set(&c.Log.Level, "info")
	set(&c.Log.Format, "text")
	name(c.GitLab.Token, "gitlab.token")
	name(c.GitLab.WriteToken, "gitlab.write_token")
	for fleetName, f := range c.Fleets {
		key := "fleets." + fleetName
		name(f.Runner.Token, key+".runner.token")
		name(f.Host.Key, key+".host.key")
		f.fill(filepath.Dir(c.Store.SQLite))
	}
	c.fillHooks()
}

func (f *Fleet) fill(state string) {
	if e := f.Provider.Exec; e != nil {
		set(&e.CommandTimeout, length(time.Hour))
		set(&e.StateDir, filepath.Join(state, "exec"))
	}
	set(&f.Runner.Registration, string(fleet.RegistrationFleet))
	set(&f.Host.Port, 22)
	set(&f.Host.RunnerUser, f.Host.User)
	set(&f.Host.Unit, "gitlab-runner.service")
	set(&f.Host.Config, "/etc/gitlab-runner/config.toml")
	set(&f.Host.HostKeys, "tofu")
	base := fleet.DefaultDrainPolicy()
	set(&f.Drain.Cap, length(base.Cap))
	set(&f.Drain.OnOverrun, string(base.OnOverrun))
	set(&f.Drain.HardCap, length(base.HardCap))
	set(&f.Drain.Unreachable, string(base.Unreachable))
	set(&f.Drain.ReachDeadline, length(base.ReachDeadline))
	set(&f.Drain.OnUnproven, string(base.OnUnproven))
	set(&f.Rollout.MaxUnavailable, 1)
	set(&f.Rollout.Gate.Online, length(10*time.Minute))
}

func set[T comparable](target *T, value T) { *target = cmp.Or(*target, value) }

func length(d time.Duration) Duration { return Duration(d.String()) }

func name(s *Secret, key string) {
	if s != nil {
		s.key = key
	}
}

func defaultDatabase() string {
	if os.Geteuid() == 0 {
		return "/var/lib/sluice/sluice.db"
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "sluice.db"
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "sluice", "sluice.db")
}
