package sim

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simcloud"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
	"gitlab.com/sluice-runners/sluice/internal/sim/simrunner"
)

// Options say what a world is like. Now is required.
type Options struct {
	Now    func() time.Time
	Random io.Reader // nil: crypto/rand
	Log    *slog.Logger
	Fleet  string // default "demo"
	VMs    int    // default 4, named runner-01, runner-02, …
	// Jobs keeps every VM busy with jobs whose script takes between MinJob and
	// MaxJob (defaults 2 s and 8 s), and an after_script of half a second. Off:
	// the caller queues jobs itself.
	Jobs           bool
	MinJob, MaxJob time.Duration
	Seed           uint64           // of the jobs' lengths
	Timing         simrunner.Timing // zero: as measured, with a check each 0.5 s
	Boot           time.Duration    // default 400 ms
	Create, Delete time.Duration    // defaults 600 ms and 300 ms
	Reload         time.Duration    // of daemon-reload; default 50 ms
	Sudoers        string           // see simhost.Options
	// Individual gives every VM a runner entry of its own, which it registers when
	// it is made (registration individual).
	Individual bool
	// Host may change each new VM's options.
	Host func(*simhost.Options)
	// GitLab may change what the GitLab starts with.
	GitLab func(*simgitlab.Config)
}

func (o Options) withDefaults() Options {
	o.Random = cmp.Or[io.Reader](o.Random, rand.Reader)
	o.Fleet = cmp.Or(o.Fleet, "demo")
	o.VMs = cmp.Or(o.VMs, 4)
	o.MinJob = cmp.Or(o.MinJob, 2*time.Second)
	o.MaxJob = max(cmp.Or(o.MaxJob, 8*time.Second), o.MinJob)
	o.Boot = cmp.Or(o.Boot, 400*time.Millisecond)
	o.Create = cmp.Or(o.Create, 600*time.Millisecond)
	o.Delete = cmp.Or(o.Delete, 300*time.Millisecond)
	o.Reload = cmp.Or(o.Reload, 50*time.Millisecond)
	if o.Timing == (simrunner.Timing{}) {
		o.Timing = simrunner.Measured()
		o.Timing.Check = 500 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// World is one small world. NewWorld makes it, Close ends it.
type World struct {
	o      Options
	clock  simclock.Clock
	gitlab *simgitlab.Server
	cloud  *simcloud.Cloud
	url    string
	key    ed25519.PrivateKey
	names  []string
	first  map[string]string // VM → the instance it began with

	life context.Context // ends with Close
	end  context.CancelFunc
	wait sync.WaitGroup

	mu    sync.Mutex
	hosts map[string]*simhost.Host // instance → host
	jobs  map[string]time.Duration // container name → how long its script runs
}

// NewWorld makes a world and starts it: GitLab answers, the VMs boot and their
// runners join. AwaitBusy waits until all of them run a job.
func NewWorld(o Options) (*World, error) {
	o = o.withDefaults()
	w := &World{o: o, clock: simclock.NewReal(o.Now), first: map[string]string{}, hosts: map[string]*simhost.Host{}, jobs: map[string]time.Duration{}}
	w.life, w.end = context.WithCancel(context.Background())
	var err error
	if _, w.key, err = ed25519.GenerateKey(o.Random); err != nil {
		return nil, fmt.Errorf("making a key for the login user: %w", err)
	}
	if err := w.startGitLab(); err != nil {
		return nil, err
	}
	w.cloud = simcloud.New(simcloud.Options{
		Clock: w.clock, NewGuest: w.newGuest, Gone: w.gitlab.VMGone, Create: o.Create, Delete: o.Delete,
		DiskLag: o.Delete / 2, Images: []string{"runner-image-1", "runner-image-2"},
	})
	for i := range o.VMs {
		name := fmt.Sprintf("runner-%02d", i+1)
		w.names = append(w.names, name)
		if w.first[name], err = w.cloud.Appear(name, nil); err != nil {
			w.Close()
			return nil, err
		}
	}
	if o.Jobs {
		w.wait.Go(w.keepBusy)
	}
	return w, nil
}

func (w *World) startGitLab() error {
	cfg := simgitlab.Config{Now: w.o.Now, LongPoll: 50 * time.Second}
	if w.o.GitLab != nil {
		w.o.GitLab(&cfg)
	}
	w.gitlab = simgitlab.New(cfg)
	var lc net.ListenConfig
	ln, err := lc.Listen(w.life, "tcp", "127.0.0.1:0")
	if err != nil {
		w.end()
		return fmt.Errorf("starting a GitLab on loopback: %w", err)
	}
	w.url = "http://" + ln.Addr().String()
	w.wait.Go(func() {
		if err := w.gitlab.Serve(w.life, ln); err != nil {
			w.o.Log.Error("the simulated GitLab ended", "error", err)
		}
	})
	return nil
}

func (w *World) newGuest(vm, instance string) (simcloud.Guest, error) {
	public, err := ssh.NewPublicKey(w.key.Public())
	if err != nil {
		return nil, fmt.Errorf("the login user's key: %w", err)
	}
	o := simhost.Options{
		Name: vm, Clock: w.clock, Random: w.o.Random, Log: w.o.Log.With("vm", vm), AuthorizedKey: public,
		GitLabURL: w.url, Token: simgitlab.DefaultRunnerToken, Timing: w.o.Timing,
		BootDelay: w.o.Boot, ReloadTime: w.o.Reload, Sudoers: w.o.Sudoers,
	}
	if w.o.Individual {
		entry := w.gitlab.Register(w.o.Fleet + "/" + vm)
		o.Token, o.RunnerID = entry.Token, entry.ID
	}
	if w.o.Host != nil {
		w.o.Host(&o)
	}
	h, err := simhost.New(o)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[instance] = h
	return h, nil
}

// Close ends everything and waits for it. What still ran is cut by that: read
// the ledger before.
func (w *World) Close() {
	w.end()
	if w.cloud != nil {
		w.cloud.Close()
	}
	w.wait.Wait()
}

// GitLab is the world's GitLab, with its switches, faults and ledger.
func (w *World) GitLab() *simgitlab.Server { return w.gitlab }

// Cloud is the world's cloud, which is the fleet's engine.Machines too.
func (w *World) Cloud() *simcloud.Cloud { return w.cloud }

// URL is the GitLab's base URL.
func (w *World) URL() string { return w.url }

// ReadToken is a token that may read everything; RunnerToken the fleet's.
func (w *World) ReadToken() string { return simgitlab.DefaultUserToken }

// WriteToken is one that may remove entries, too.
func (w *World) WriteToken() string { return simgitlab.DefaultWriteToken }

// RunnerToken is the runner entry's authentication token.
func (w *World) RunnerToken() string { return simgitlab.DefaultRunnerToken }

// PrivateKey is the login user's SSH key, in OpenSSH's PEM format.
func (w *World) PrivateKey() ([]byte, error) {
	block, err := ssh.MarshalPrivateKey(w.key, "sluice demo")
	if err != nil {
		return nil, fmt.Errorf("writing the login user's key: %w", err)
	}
	return pem.EncodeToMemory(block), nil
}

// Signer is the same key for x/crypto/ssh.
func (w *World) Signer() (ssh.Signer, error) { return ssh.NewSignerFromKey(w.key) }

// Spec is the fleet's spec, ready for the engine.
func (w *World) Spec() fleet.Spec {
	s := fleet.Spec{
		Name: w.o.Fleet, VMs: append([]string(nil), w.names...), RunnerID: simgitlab.DefaultRunnerID, GitLabURL: w.url,
		Registration: fleet.RegistrationFleet, HasGitLab: true, HasRunnerToken: true,
		Drain: fleet.DefaultDrainPolicy(), MaxUnavailable: 1, GateOnline: time.Minute, Image: simcloud.Newest,
		Host: fleet.HostSettings{User: "fedora", RunnerUser: "fedora", Unit: "gitlab-runner.service", ConfigPath: "/etc/gitlab-runner/config.toml"},
	}
	if w.o.Individual {
		s.RunnerID, s.Registration, s.HasRunnerToken = 0, fleet.RegistrationIndividual, false
	}
	return s
}

// Host yields the living host of a VM; nil if there is none, or two.
func (w *World) Host(vm string) *simhost.Host {
	var found *simhost.Host
	for _, in := range w.cloud.Instances() {
		if in.VM != vm {
			continue
		}
		if found != nil {
			return nil
		}
		found = w.HostOf(in.ID)
	}
	return found
}

// HostOf yields the host of an instance, also of one that is gone.
func (w *World) HostOf(instance string) *simhost.Host {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts[instance]
}

// inMidJob says whether a host runs a job of ours that is not about to end.
func (w *World) inMidJob(h *simhost.Host) bool {
	for _, c := range h.Containers() {
		age, there := h.ContainerAge(c.Names[0])
		w.mu.Lock()
		length, ours := w.jobs[c.Names[0]]
		w.mu.Unlock()
		if there && (!ours || length-age > length/4) {
			return true
		}
	}
	return false
}

// keepBusy queues jobs so that some are always waiting.
func (w *World) keepBusy() {
	lengths := mathrand.New(mathrand.NewPCG(w.o.Seed, 1)) //nolint:gosec // a demo's job lengths
	for n := 1; ; {
		for ledger := w.gitlab.Ledger(); ledger.Pending < w.o.VMs; ledger.Pending++ {
			length := w.o.MinJob + time.Duration(lengths.Int64N(int64(w.o.MaxJob-w.o.MinJob)+1))
			id := w.gitlab.Enqueue(simgitlab.JobSpec{
				Name: fmt.Sprintf("build-%d", n), Duration: length.Round(100 * time.Millisecond), AfterDuration: 500 * time.Millisecond,
			})
			w.mu.Lock()
			w.jobs[fmt.Sprintf("runner-%d", id)] = length
			w.mu.Unlock()
			n++
		}
		if !simclock.Sleep(w.life, w.clock, 200*time.Millisecond) {
			return
		}
	}
}
