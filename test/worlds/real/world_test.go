package real

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
	"gitlab.com/sluice-runners/sluice/internal/sim/simrunner"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

const fleetName = "lab"

// patience is how long a world may go without an event before it is at rest:
// some waits of the product cannot be shortened (ten seconds for a result that
// is on its way, thirty for a container that was left), and the machine may be
// busy.
const patience = 60 * time.Second

// world is one run of a plan: a fleet, and a Sluice that lives and dies in
// processes of its own.
type world struct {
	*sim.World
	plan   plan
	dir    string
	server *server
	client *client.Client
	pace   *pace
	life   context.Context
	began  time.Time
	inputs sync.WaitGroup // acts and intents

	mu      sync.Mutex
	story   []string
	sees    *store.Store // the journal, read beside the server
	lose    int          // answers of the cloud that get lost
	stops   map[stopKey]time.Time
	hurt    map[string][]span      // by system_id: when a fault of the plan ended what ran on it
	away    map[string][]time.Time // by VM: when a fault of the plan last kept its host from answering
	powered map[string]bool        // by VM: it had a power cut
	broken  []string
	pending int // chores that wait, with their reason
}

// span is from a fault's beginning to its end.
type span struct{ from, to time.Time }

// stopKey is a stop of intake: one operation's, on one instance.
type stopKey struct{ instance, operation string }

// newWorld makes the world of a plan; nothing has happened yet.
func newWorld(ctx context.Context, p plan, bin binaries, busy *pace) (*world, error) {
	dir, err := os.MkdirTemp("", "slw") // a socket's path is short
	if err != nil {
		return nil, err
	}
	w := &world{
		plan: p, dir: dir, life: ctx, pace: busy, began: time.Now(), stops: map[stopKey]time.Time{},
		hurt: map[string][]span{}, away: map[string][]time.Time{}, powered: map[string]bool{},
	}
	w.World, err = sim.NewWorld(sim.Options{
		Now: time.Now, Fleet: fleetName, VMs: p.VMs, Seed: p.Seed, Timing: hurried(),
		Boot: 150 * time.Millisecond, Create: 100 * time.Millisecond, Delete: 100 * time.Millisecond, Reload: 10 * time.Millisecond,
		Host: func(o *simhost.Options) { o.Concurrent, o.RestartSec = p.Concurrent, "1" },
	})
	if err != nil {
		return nil, err
	}
	w.GitLab().Switch(func(s *simgitlab.Switches) { s.AssignDelay = p.AssignDelay })
	if err := w.configure(bin); err != nil {
		w.end()
		return nil, err
	}
	if w.client, err = client.New(client.Options{Socket: filepath.Join(dir, "s")}); err != nil {
		w.end()
		return nil, err
	}
	w.server = &server{w: w, path: bin.sluice, config: filepath.Join(dir, "sluice.yaml")}
	return w, nil
}

// hurried is the real runner's order of things, faster.
func hurried() simrunner.Timing {
	t := simrunner.Measured()
	t.Container, t.Died, t.Removed, t.Interrupt = 150*time.Millisecond, 50*time.Millisecond, 30*time.Millisecond, 100*time.Millisecond
	t.Check, t.Trace = 300*time.Millisecond, 300*time.Millisecond
	return t
}

func (w *world) end() {
	if w.sees != nil {
		_ = w.sees.Close()
	}
	w.World.Close()
	_ = os.RemoveAll(w.dir)
}

// configure writes what the server reads. Its waits are as short as the
// configuration lets them be; none is shortened otherwise.
func (w *world) configure(bin binaries) error {
	key, err := w.PrivateKey()
	if err != nil {
		return err
	}
	p := w.plan.Policy
	call := fmt.Sprintf("[%s, %s]", bin.cloudcall, w.path("cloud"))
	text := fmt.Sprintf(`gitlab: {url: %q, token: {file: %s}}
fleets:
  %s:
    runner: {id: %d, token: {file: %s}}
    vms: {names: [%s]}
    image: newest
    provider:
      exec: {list: %[7]s, describe: %[7]s, prepare: %[7]s, check: %[7]s, create: %[7]s, delete: %[7]s, remains: %[7]s}
    host: {user: fedora, runner_user: fedora, key: {file: %[8]s}, host_keys: provider}
    drain: {cap: %s, hard_cap: %s, reach_deadline: %s, on_overrun: %s, unreachable: %s}
    rollout: {max_unavailable: %d, gate: {online: 60s}}
store: {sqlite: %s}
server: {socket: %s}
`, w.URL(), w.path("gitlab-token"), fleetName, w.Spec().RunnerID, w.path("runner-token"), strings.Join(w.Spec().VMs, ", "),
		call, w.path("key"), p.Cap, p.HardCap, p.Reach, p.OnOverrun, p.Unreachable, w.plan.Unavailable, w.path("db"), w.path("s"))
	for name, content := range map[string]string{
		"sluice.yaml": text, "key": string(key), "gitlab-token": w.ReadToken(), "runner-token": w.RunnerToken(),
	} {
		if err := os.WriteFile(w.path(name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// vm names a VM of the plan.
func (w *world) vm(i int) string { return w.Spec().VMs[i%w.plan.VMs] }

// say adds a line to the story.
func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%7.3f ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// violation notes a promise that was broken.
func (w *world) violation(rule, format string, args ...any) {
	text := rule + ": " + fmt.Sprintf(format, args...)
	w.say("BROKEN  %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, text)
}

// pause waits for d, or until the world ends.
func (w *world) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.life.Done():
		return false
	}
}
