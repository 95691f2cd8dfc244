package runnerhost

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"log/slog"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
	"gitlab.com/sluice-runners/sluice/internal/sim/simrunner"
)

var _ engine.Hosts = (*Hosts)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testBootID = "0f1e2d3c-0000-4000-8000-000000000001"

func testSettings() fleet.HostSettings {
	return fleet.HostSettings{
		User: "fedora", RunnerUser: "fedora",
		Unit: "gitlab-runner.service", ConfigPath: "/etc/gitlab-runner/config.toml",
	}
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newSigner(t testing.TB) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// memoryKeys is a KeyStore.
type memoryKeys struct {
	mu   sync.Mutex
	keys map[string][]string
}

func (m *memoryKeys) Known(_ context.Context, ref fleet.Ref, instance string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keys[ref.String()+" "+instance], nil
}

func (m *memoryKeys) Trust(_ context.Context, ref fleet.Ref, instance, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		m.keys = map[string][]string{}
	}
	m.keys[ref.String()+" "+instance] = append(m.keys[ref.String()+" "+instance], key)
	return nil
}

// world is a simulated host that is joined to a simulated GitLab, and what
// reaches it.
type world struct {
	*simhost.Host
	t      *testing.T
	gitlab *simgitlab.Server
	hosts  *Hosts
	signer ssh.Signer
	number int64
}

func newWorld(t *testing.T, change func(*simhost.Options)) *world {
	t.Helper()
	w := &world{t: t, signer: newSigner(t), gitlab: simgitlab.New(simgitlab.Config{Now: time.Now, LongPoll: 50 * time.Second})}
	server := httptest.NewServer(w.gitlab)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	timing := simrunner.Measured()
	timing.Handlers, timing.Container, timing.Check, timing.Trace = 5*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond
	timing.Died, timing.Removed, timing.Interrupt = 20*time.Millisecond, 10*time.Millisecond, 30*time.Millisecond
	o := simhost.Options{
		Name: "runner-01", Clock: simclock.NewReal(time.Now), AuthorizedKey: w.signer.PublicKey(),
		GitLabURL: server.URL, Token: simgitlab.DefaultRunnerToken, Timing: timing, RestartSec: "100ms",
	}
	if change != nil {
		change(&o)
	}
	var err error
	if w.Host, err = simhost.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Destroy)
	settings := testSettings()
	if o.RunnerUser != "" {
		settings.RunnerUser = o.RunnerUser
	}
	if w.hosts, err = New(Options{Settings: settings, Signers: []ssh.Signer{w.signer}, Clock: realClock{}, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.hosts.Close)
	w.PowerOn()
	w.eventually("the host is up", w.Up)
	w.eventually("the runner runs", func() bool { return w.show("SubState") == "running" })
	return w
}

func (w *world) target() engine.Target {
	return engine.Target{
		Ref: fleet.Ref{Fleet: "f", VM: "runner-01"}, Instance: "i-1",
		Address: w.Address(), HostKeys: []string{w.HostKey()},
	}
}

// order is the next one, of the verb.
func (w *world) order(verb fleet.OrderVerb) fleet.Order {
	w.number++
	return fleet.Order{Verb: verb, Owner: "sluice-a", Operation: "op-1", Number: w.number, BootID: w.BootID()}
}

func (w *world) look() *fleet.HostReading {
	w.t.Helper()
	r, err := w.hosts.Look(w.t.Context(), w.target())
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// stop stops intake and sees that it was.
func (w *world) stop() *fleet.HostReading {
	w.t.Helper()
	r, err := w.hosts.StopIntake(w.t.Context(), w.target(), w.order(fleet.OrderStop))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) job(script time.Duration) int64 {
	w.t.Helper()
	id := w.gitlab.Enqueue(simgitlab.JobSpec{Duration: script})
	w.eventually("the job's container", func() bool { return len(w.Containers()) > 0 })
	return id
}

// status is GitLab's word on a job.
func (w *world) status(id int64) string {
	w.t.Helper()
	record, ok := w.gitlab.Job(id)
	if !ok {
		w.t.Fatalf("no job %d", id)
	}
	return record.Status
}

// show is one property of the runner's unit, as the model has it.
func (w *world) show(name string) string {
	m := w.Systemd()
	if m == nil {
		return ""
	}
	for _, p := range m.Show("gitlab-runner.service") {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

func (w *world) eventually(what string, cond func() bool) {
	w.t.Helper()
	eventually(w.t, what, cond)
}

// eventually polls for a condition; it fails the test after ten seconds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never came: %s", what)
		}
	}
}

// missing passes a test over for want of a tool; where everything must be
// there (CI=true), that is a failure.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}
