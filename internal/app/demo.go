package app

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/runnerhost"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// busyLimit is how long the world may take until every VM runs a job.
const busyLimit = 30 * time.Second

// gateLimit is how long a new VM of the world may take to serve: it takes two
// seconds, and a wrong way that loses it shall not make people wait.
const gateLimit = 15 * time.Second

// Sabotages lists the wrong ways that the demo can show.
func Sabotages() []string { return sim.Sabotages() }

// DemoOptions are what a Demo is made of.
type DemoOptions struct {
	Sabotage string // "" = do it right
	Version  string
	Log      io.Writer
}

// Demo is Sluice on a small world in this process.
type Demo struct {
	App   *App
	Fleet string
	VMs   []string
	world *sim.World
	dir   string
}

// Account is the world's own judgement.
type Account struct {
	Replaced int
	JobsRun  int
	JobsCut  int
	Damage   []string
}

// OpenDemo starts the world and Sluice on it, and waits until every VM runs a
// job. The journal lies in a directory that Close removes.
func OpenDemo(ctx context.Context, o DemoOptions) (*Demo, error) {
	if lacking := simhost.Lacking(); len(lacking) > 0 {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "the demo's simulated hosts run %s, and this machine has none", strings.Join(lacking, ", ")).
			WithHint("install them, or use the image with a shell (sluice/ci)")
	}
	dir, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "the demo needs a directory for its journal: %w", err).WithHint("set TMPDIR")
	}
	d := &Demo{dir: dir}
	if d.world, err = sim.NewWorld(sim.Options{Now: clock{}.Now, Random: rand.Reader, Jobs: true}); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	spec := d.world.Spec()
	spec.GateOnline = gateLimit
	d.Fleet, d.VMs = spec.Name, spec.VMs
	f, err := d.fleet(spec)
	if err == nil && o.Sabotage != "" {
		err = d.world.Sabotage(o.Sabotage, f)
	}
	if err == nil {
		err = d.busy(ctx)
	}
	if err == nil {
		d.App, err = Open(ctx, Options{
			Config: d.config(), Role: RoleServe, Command: "sluice demo", Version: o.Version, Log: o.Log,
			Fleets: map[string]*engine.Fleet{spec.Name: f},
		})
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Demo) busy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busyLimit)
	defer cancel()
	return d.world.AwaitBusy(ctx)
}

// fleet makes the adapters to the world: the real ones for GitLab and hosts.
func (d *Demo) fleet(spec fleet.Spec) (*engine.Fleet, error) {
	instance, err := gitlab.New(gitlab.Config{URL: d.world.URL(), Token: d.world.ReadToken(), Now: clock{}.Now})
	if err != nil {
		return nil, err
	}
	signer, err := d.world.Signer()
	if err != nil {
		return nil, err
	}
	hosts, err := runnerhost.New(runnerhost.Options{
		Settings: spec.Host, Signers: []ssh.Signer{signer}, HostKeys: runnerhost.HostKeysProvider, Clock: clock{},
	})
	if err != nil {
		return nil, err
	}
	return &engine.Fleet{
		Spec: spec, Hosts: hosts, Machines: d.world.Cloud(),
		GitLab: instance.Entry(spec.RunnerID), Registrar: instance.Registrar(d.world.RunnerToken()),
	}, nil
}

// config is the least that the app needs beside the adapters.
func (d *Demo) config() *config.Config {
	return &config.Config{
		Store:  config.Store{SQLite: filepath.Join(d.dir, "demo.db")},
		Log:    config.Log{Level: "error", Format: "text"},
		Fleets: map[string]*config.Fleet{},
	}
}

// Account reads the world's ledger.
func (d *Demo) Account(context.Context) Account {
	s := d.world.Summary()
	a := Account{Replaced: s.Replaced, JobsRun: s.JobsRun, JobsCut: s.Cut, Damage: []string{}}
	if err := s.Damage(d.VMs...); err != nil {
		a.Damage = strings.Split(err.Error(), "\n")
	}
	return a
}

// Close ends Sluice and the world and removes the journal.
func (d *Demo) Close() error {
	var problems []error
	if d.App != nil {
		problems = append(problems, d.App.Close())
	}
	if d.world != nil {
		d.world.Close()
	}
	return errors.Join(append(problems, os.RemoveAll(d.dir))...)
}
