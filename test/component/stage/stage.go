// Package stage is a controller for tests of what a pipeline's job sees: Sluice
// itself behind an HTTP listener on loopback, on a simulated fleet, with a
// door in front that can be shut, cut and made to lie. It must not know the
// job.
package stage

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/runnerhost"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// Fleet is the name of the only fleet, Token a static bearer token that may do
// everything.
const (
	Fleet = "shared"
	Token = "sluice_stage" //nolint:gosec // of this world only
)

// Options say what the fleet is like.
type Options struct {
	VMs            int           // default 2
	MinJob, MaxJob time.Duration // default 1 s and 2 s
	Gate           time.Duration // how long a new VM may take to serve; default 2 min
	MaxUnavailable int           // default 1
	Issuer         *Issuer       // lets in jobs with its id_tokens; nil: static tokens alone
}

// Stage is a controller and its world.
type Stage struct {
	*Door
	World *sim.World
	o     Options
	dir   string
	app   *app.App

	mu  sync.Mutex
	bad map[string]bool // VMs whose next incarnations never join
}

// Open starts the world and the controller, and waits until every VM runs a
// job. It ends with the test.
func Open(t *testing.T, o Options) *Stage {
	t.Helper()
	s := &Stage{o: o.withDefaults(), bad: map[string]bool{}}
	s.dir = shortDir(t)
	var err error
	s.World, err = sim.NewWorld(sim.Options{
		Now: time.Now, Random: rand.Reader, Fleet: Fleet, VMs: s.o.VMs, Jobs: true, MinJob: s.o.MinJob, MaxJob: s.o.MaxJob, Host: s.host,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.World.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := s.World.AwaitBusy(ctx); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	t.Cleanup(func() {
		if err := s.app.Close(); err != nil {
			t.Error(err)
		}
	})
	s.Door = newDoor(t, s.app.Handler())
	return s
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.MinJob, time.Second)
	set(&o.MaxJob, 2*time.Second)
	set(&o.Gate, 2*time.Minute)
	o.VMs = max(o.VMs, 2)
	o.MaxUnavailable = max(o.MaxUnavailable, 1)
	return o
}

// shortDir is a directory whose path fits a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// BadImage makes the next incarnation of a VM one whose runner never joins.
func (s *Stage) BadImage(vm string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad[vm] = true
}

func (s *Stage) host(o *simhost.Options) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad[o.Name] {
		o.Token = "glrt-not-the-fleet-s"
	}
}

// Restart ends the controller in the middle of whatever it does, and starts
// another on the same journal. Nobody is let in meanwhile.
func (s *Stage) Restart(t *testing.T) {
	t.Helper()
	s.Shut(true)
	if err := s.app.Close(); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	s.lead(s.app.Handler())
	s.Shut(false)
}

func (s *Stage) start(t *testing.T) {
	t.Helper()
	f, err := s.fleet()
	if err == nil {
		s.app, err = app.Open(t.Context(), app.Options{
			Config: s.config(), Role: app.RoleServe, Command: "sluice serve", Version: "test", Log: t.Output(),
			Fleets: map[string]*engine.Fleet{Fleet: f},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *Stage) config() *config.Config {
	c := &config.Config{
		Store:  config.Store{SQLite: filepath.Join(s.dir, "a.db")},
		Server: config.Server{Tokens: []config.Token{{Name: "pipeline", SHA256: access.Hash(Token)}}},
		Log:    config.Log{Level: "error", Format: "text"},
		Fleets: map[string]*config.Fleet{},
	}
	if s.o.Issuer != nil {
		s.o.Issuer.let(c)
	}
	return c
}

// fleet is the real adapters on the world.
func (s *Stage) fleet() (*engine.Fleet, error) {
	spec := s.World.Spec()
	spec.GateOnline, spec.MaxUnavailable = s.o.Gate, s.o.MaxUnavailable
	instance, err := gitlab.New(gitlab.Config{URL: s.World.URL(), Token: s.World.ReadToken(), Now: time.Now})
	if err != nil {
		return nil, err
	}
	signer, err := s.World.Signer()
	if err != nil {
		return nil, err
	}
	hosts, err := runnerhost.New(runnerhost.Options{
		Settings: spec.Host, Signers: []ssh.Signer{signer}, HostKeys: runnerhost.HostKeysProvider, Clock: wall{},
	})
	if err != nil {
		return nil, err
	}
	return &engine.Fleet{
		Spec: spec, Hosts: hosts, Machines: s.World.Cloud(),
		GitLab: instance.Entry(spec.RunnerID), Registrar: instance.Registrar(s.World.RunnerToken()),
	}, nil
}

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

// Images are the images of the instances that carry a VM's name.
func (s *Stage) Images(vm string) []string {
	var images []string
	for _, in := range s.World.Cloud().Instances() {
		if in.VM == vm {
			images = append(images, in.Image)
		}
	}
	return images
}
