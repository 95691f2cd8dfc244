package exec

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const testFleet = "lab"

// toy is the cloud of testdata/toycloud.sh: directories under dir.
type toy struct{ dir string }

func newToy(t *testing.T) *toy {
	t.Helper()
	w := &toy{dir: t.TempDir()}
	for _, name := range []string{"vms", "new", "late", "gone", "disks", "images"} {
		if err := os.Mkdir(filepath.Join(w.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.put(t, "images/toy-42", "")
	t.Cleanup(func() { w.HoldActs(t, false) }) // nothing outlives its test
	return w
}

func (w *toy) put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *toy) drop(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
		t.Fatal(err)
	}
}

func (w *toy) flag(t *testing.T, name string, on bool) {
	t.Helper()
	if on {
		w.put(t, name, "")
		return
	}
	w.drop(t, name)
}

func (w *toy) read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(raw)
}

// calls counts the runs of a verb.
func (w *toy) calls(t *testing.T, verb Verb) int {
	t.Helper()
	return strings.Count("\n"+w.read(t, "calls"), "\n"+string(verb)+" ")
}

func (w *toy) ids(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "vms"))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, entry := range entries {
		ids = append(ids, entry.Name())
	}
	return ids
}

var appeared int

// Appear implements providertest.World.
func (w *toy) Appear(t *testing.T, vm string, labels map[string]string) string {
	t.Helper()
	appeared++
	id := fmt.Sprintf("i-appeared-%d", appeared)
	fresh := filepath.Join("new", id)
	if err := os.Mkdir(filepath.Join(w.dir, fresh), 0o700); err != nil {
		t.Fatal(err)
	}
	w.put(t, fresh+"/name", vm+"\n")
	w.put(t, fresh+"/image", "toy-41\n")
	w.put(t, fresh+"/operation", labels[fleet.LabelOperation])
	w.put(t, fresh+"/created", time.Now().UTC().Format(time.RFC3339Nano)+"\n")
	w.move(t, fresh, filepath.Join("vms", id))
	return id
}

func (w *toy) move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to)); err != nil {
		t.Fatal(err)
	}
}

// Exists implements providertest.World.
func (w *toy) Exists(t *testing.T, id string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(w.dir, "vms", id))
	return err == nil
}

// Blind implements providertest.Blinder: the cloud's answers end in mid-word.
func (w *toy) Blind(t *testing.T, blind bool) {
	t.Helper()
	w.flag(t, "blind", blind)
}

// FailCreate implements providertest.Failer.
func (w *toy) FailCreate(t *testing.T, code fleet.Code) {
	t.Helper()
	for exit, kind := range codes {
		if kind == code {
			w.put(t, "fail-create", strconv.Itoa(exit))
			return
		}
	}
	t.Fatalf("no exit code means %s", code)
}

// FailureKinds implements providertest.Failer.
func (w *toy) FailureKinds() []fleet.Code {
	return []fleet.Code{
		fleet.CodeStockout, fleet.CodeQuota, fleet.CodeUnavailable, fleet.CodeConflict,
		fleet.CodeInvalid, fleet.CodeForbidden, fleet.CodeImageMissing,
	}
}

// LoseCreate implements providertest.Loser.
func (w *toy) LoseCreate(t *testing.T) {
	t.Helper()
	w.flag(t, "lose-create", true)
}

// DeliverLate implements providertest.Loser.
func (w *toy) DeliverLate(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "late"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d late instances, error %v; want one", len(entries), err)
	}
	id := entries[0].Name()
	w.move(t, filepath.Join("late", id), filepath.Join("vms", id))
	return id
}

// HoldReady implements providertest.Slow.
func (w *toy) HoldReady(t *testing.T, hold bool) {
	t.Helper()
	w.flag(t, "unready", hold)
}

// KeepDependents implements providertest.Keeper.
func (w *toy) KeepDependents(t *testing.T, keep bool) {
	t.Helper()
	w.flag(t, "keep-disks", keep)
}

// DropDependents implements providertest.Keeper.
func (w *toy) DropDependents(t *testing.T) {
	t.Helper()
	w.drop(t, "disks")
}

// LingerDeletes implements providertest.Lingerer.
func (w *toy) LingerDeletes(t *testing.T, linger bool) {
	t.Helper()
	w.flag(t, "linger", linger)
	if linger {
		return
	}
	for _, id := range strings.Fields(w.read(t, "lingering")) {
		if w.Exists(t, id) {
			w.move(t, "vms/"+id, "gone/"+id)
		}
	}
}

// HoldActs implements providertest.Holder.
func (w *toy) HoldActs(t *testing.T, hold bool) {
	t.Helper()
	w.flag(t, "hold-create", hold)
	w.flag(t, "hold-delete", hold)
	if !hold {
		w.flag(t, "hold-answer", false)
	}
}

// live yields the VM's only session and fails unless there is one.
func live(t *testing.T, p *Provider, vm string) *session {
	t.Helper()
	running, err := p.running(t.Context(), vm)
	if err != nil || len(running) != 1 {
		t.Fatalf("%d commands run for %s, error %v; want one", len(running), vm, err)
	}
	return running[0]
}

// kill ends every process of a session without warning, the supervisor first,
// and returns when they are gone.
func kill(t *testing.T, s *session) {
	t.Helper()
	eventually(t, "the session to be gone", func() bool {
		pids, err := s.members()
		if err != nil {
			t.Fatal(err)
		}
		if len(pids) > 0 {
			_ = s.signal(syscall.SIGKILL)
		}
		return len(pids) == 0
	})
}

func wantCode(t *testing.T, err error, code fleet.Code) {
	t.Helper()
	if got := fleet.CodeOf(err); got != code {
		t.Fatalf("code %q, want %q (error: %v)", got, code, err)
	}
}

func wantText(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

// script writes an executable shell script and yields its path.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "command.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil { //nolint:gosec // a command
		t.Fatal(err)
	}
	return path
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

// laterClock is a clock that a test moves.
type laterClock struct{ ahead time.Duration }

func (c *laterClock) Now() time.Time { return time.Now().Add(c.ahead) }

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// config drives the toy with every verb.
func (w *toy) config(t *testing.T, stateDir string) Config {
	t.Helper()
	script, err := filepath.Abs("testdata/toycloud.sh")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Fleet: testFleet, StateDir: stateDir, Commands: map[Verb][]string{},
		Env: map[string]Value{"TOY": {Literal: w.dir}}, Spec: map[string]any{"size": "small"},
	}
	for _, verb := range Verbs() {
		if verb != VerbCheck {
			cfg.Commands[verb] = []string{script}
		}
	}
	return cfg
}

func newProvider(t *testing.T, cfg Config) *Provider {
	t.Helper()
	p, err := New(cfg, wallClock{}, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	p.hold = 100 * time.Millisecond
	return p
}

// newLab is a toy and a provider over it.
func newLab(t *testing.T) (*toy, *Provider) {
	t.Helper()
	w := newToy(t)
	p := newProvider(t, w.config(t, t.TempDir()))
	t.Cleanup(func() { w.leave(t, p) })
	return w, p
}

// leave waits for what still runs: its files must not come after the removal
// of the directory that they belong in.
func (w *toy) leave(t *testing.T, p *Provider) {
	w.HoldActs(t, false)
	vms, _ := os.ReadDir(filepath.Join(p.fleetDir(), "vms"))
	for _, vm := range vms {
		eventually(t, "the commands of "+vm.Name()+" to end", func() bool {
			running, err := p.running(context.Background(), vm.Name())
			return err != nil || len(running) == 0
		})
	}
}

func createOrder(vm string, attempt int) engine.CreateOrder {
	const op = "op-test1"
	return engine.CreateOrder{
		Ref: fleet.Ref{Fleet: testFleet, VM: vm}, Operation: op, Attempt: attempt,
		Token: fleet.RequestToken(op, "create", attempt), Prepared: fleet.Prepared{Image: "toy-42"},
	}
}

func deleteOrder(vm, instance string, attempt int) engine.DeleteOrder {
	const op = "op-test1"
	return engine.DeleteOrder{
		Ref: fleet.Ref{Fleet: testFleet, VM: vm}, Operation: op, Attempt: attempt,
		Token: fleet.RequestToken(op, "delete", attempt), Instance: instance,
	}
}

// eventually polls until ready says true or 30 s have passed.
func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

// settleCreate looks at a create until it is done or fails.
func settleCreate(t *testing.T, p *Provider, o engine.CreateOrder) (engine.Progress, error) {
	t.Helper()
	return settleAct(t, func(ctx context.Context) (engine.Progress, error) { return p.Create(ctx, o) })
}

func settleDelete(t *testing.T, p *Provider, o engine.DeleteOrder) (engine.Progress, error) {
	t.Helper()
	return settleAct(t, func(ctx context.Context) (engine.Progress, error) { return p.Delete(ctx, o) })
}

func settleAct(t *testing.T, act func(context.Context) (engine.Progress, error)) (progress engine.Progress, err error) {
	t.Helper()
	eventually(t, "the act to settle", func() bool {
		progress, err = act(t.Context())
		return progress.Done || err != nil
	})
	return progress, err
}
