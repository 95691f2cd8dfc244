//go:build alerts

package alerts

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/runnerhost"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

// drainCap is short, so that the drain overruns while the test looks on.
const drainCap = 2 * time.Second

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

// sluice is a server on a small world with one VM, whose job never ends.
type sluice struct {
	*client.Client
	world   *sim.World
	fleet   string
	vm      string
	address string // of /metrics
}

func serve(t *testing.T) *sluice {
	t.Helper()
	w, err := sim.NewWorld(sim.Options{
		Now: time.Now, VMs: 1, Fleet: "lab",
		Host: func(o *simhost.Options) { o.Hold = func() bool { return true } },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	w.GitLab().Enqueue(simgitlab.JobSpec{Name: "endless", Duration: time.Second})
	if err := w.AwaitBusy(t.Context()); err != nil {
		t.Fatal(err)
	}
	spec := w.Spec()
	spec.Drain.Cap = drainCap
	dir, err := os.MkdirTemp("", "sluice") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	log := &output{}
	a, err := app.Open(t.Context(), app.Options{
		Config: &config.Config{
			Store:  config.Store{SQLite: filepath.Join(dir, "sluice.db")},
			Server: config.Server{Socket: filepath.Join(dir, "s"), Listen: "127.0.0.1:0"},
			Log:    config.Log{Level: "info", Format: "text"}, Fleets: map[string]*config.Fleet{},
		},
		Role: app.RoleServe, Command: "alerts", Version: "test", Log: log,
		Fleets: map[string]*engine.Fleet{spec.Name: adapters(t, w, spec)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	s := &sluice{world: w, fleet: spec.Name, vm: spec.VMs[0], address: log.address(t, `msg=listening address=(\S+)`)}
	if s.Client, err = client.New(client.Options{Socket: filepath.Join(dir, "s")}); err != nil {
		t.Fatal(err)
	}
	return s
}

func adapters(t *testing.T, w *sim.World, spec fleet.Spec) *engine.Fleet {
	t.Helper()
	instance, err := gitlab.New(gitlab.Config{URL: w.URL(), Token: w.ReadToken(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := w.Signer()
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := runnerhost.New(runnerhost.Options{
		Settings: spec.Host, Signers: []ssh.Signer{signer}, HostKeys: runnerhost.HostKeysProvider, Clock: wallClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &engine.Fleet{
		Spec: spec, Hosts: hosts, Machines: w.Cloud(),
		GitLab: instance.Entry(spec.RunnerID), Registrar: instance.Registrar(w.RunnerToken()),
	}
}
