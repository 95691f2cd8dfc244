package exec

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// lab with a clock that can be moved, and a create command of the test's own.
func labWith(t *testing.T, body string) (*toy, *Provider, *laterClock) {
	t.Helper()
	w, clock := newToy(t), &laterClock{}
	cfg := w.config(t, t.TempDir())
	cfg.Commands[VerbCreate] = []string{script(t, body)}
	p, err := New(cfg, clock, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	p.hold = 300 * time.Millisecond
	t.Cleanup(func() {
		running, _ := p.running(context.WithoutCancel(t.Context()), "vm-1")
		for _, s := range running {
			kill(t, s)
		}
	})
	return w, p, clock
}

func TestALongCommandIsEndedAtItsTimeout(t *testing.T) {
	for name, body := range map[string]string{
		"that obeys TERM":   "echo working >&2; exec sleep 1000",
		"that ignores TERM": "trap '' TERM; echo working >&2; while :; do sleep 1000; done",
	} {
		t.Run(name, func(t *testing.T) {
			_, p, clock := labWith(t, body)
			eventually(t, "its log to be shown as progress", func() bool {
				progress, err := p.Create(t.Context(), createOrder("vm-1", 1))
				if err != nil || progress.Done {
					t.Fatalf("while it works: %+v, %v", progress, err)
				}
				return progress.Detail == "working"
			})
			s := live(t, p, "vm-1")
			clock.ahead = DefaultCommandTimeout + time.Second
			for range 2 { // and it stays so
				_, err := p.Create(t.Context(), createOrder("vm-1", 1))
				wantCode(t, err, fleet.CodeUnavailable)
				wantText(t, err, "lab/vm-1", "1h0m0s", "command_timeout", "its log is "+s.dir)
			}
			if pids, err := s.members(); err != nil || len(pids) != 0 {
				t.Errorf("still alive: %v, %v", pids, err)
			}
		})
	}
}

func TestAnotherAttemptEndsAnOverdueCommandFirst(t *testing.T) {
	w, p, clock := labWith(t, "exec sleep 1000")
	if _, err := p.Create(t.Context(), createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	id := w.Appear(t, "vm-1", nil)
	_, err := p.Delete(t.Context(), deleteOrder("vm-1", id, 1))
	wantCode(t, err, fleet.CodeConflict)
	clock.ahead = DefaultCommandTimeout + time.Second
	if _, err := settleDelete(t, p, deleteOrder("vm-1", id, 1)); err != nil || w.Exists(t, id) {
		t.Fatalf("a delete after the timeout: %v", err)
	}
	if running, err := p.running(t.Context(), "vm-1"); err != nil || len(running) != 0 {
		t.Errorf("still running: %v, %v", running, err)
	}
}

func TestALongCommandThatFloodsIsEnded(t *testing.T) {
	_, p, _ := labWith(t, "yes | head -c 2000000; exec sleep 1000")
	_, err := settleCreate(t, p, createOrder("vm-1", 1))
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "lab/vm-1", "more than 1 MiB on stdout", "its log is")
}

func TestWhatACommandLeavesBehindIsEndedWithIt(t *testing.T) {
	w := newToy(t)
	toyScript := w.config(t, "/nowhere").Commands[VerbCreate][0]
	mark := filepath.Join(t.TempDir(), "left")
	cfg := w.config(t, t.TempDir())
	cfg.Commands[VerbCreate] = []string{script(t, "sh -c 'sleep 1000; : "+mark+"' &\n"+toyScript)}
	p := newProvider(t, cfg)
	if _, err := settleCreate(t, p, createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	if left := commandsWith(t, mark); len(left) != 0 {
		t.Errorf("still alive: %v", left)
	}
	if _, err := settleDelete(t, p, deleteOrder("vm-1", w.ids(t)[0], 1)); err != nil {
		t.Fatalf("the next act: %v", err)
	}
}

func TestOneTokenAskedForAtOnceRunsOneCommand(t *testing.T) { // T45
	w, p := newLab(t)
	var askers sync.WaitGroup
	for range 8 {
		askers.Go(func() {
			if _, err := p.Create(t.Context(), createOrder("vm-1", 1)); err != nil {
				t.Error(err)
			}
		})
	}
	askers.Wait()
	if _, err := settleCreate(t, p, createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	if n := w.calls(t, VerbCreate); n != 1 || len(w.ids(t)) != 1 {
		t.Errorf("%d creates, instances %v; want one", n, w.ids(t))
	}
}

func TestASessionIsKnownByPidStartTimeAndBoot(t *testing.T) {
	w, p := newLab(t)
	w.HoldActs(t, true)
	if _, err := p.Create(t.Context(), createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	s := live(t, p, "vm-1")
	later, boot := s.process, s.process
	later.StartTime--
	boot.BootID = "another"
	for name, other := range map[string]process{"another process has the pid": later, "the host was rebooted": boot} {
		if pids, err := other.members(); err != nil || len(pids) != 0 {
			t.Errorf("%s: it is taken for %v, %v", name, pids, err)
		}
	}
	if pids, err := s.members(); err != nil || len(pids) < 2 {
		t.Errorf("its own processes are %v, %v; want the supervisor and the command", pids, err)
	}
}

func TestTheCommandLivesOnWithoutItsSupervisor(t *testing.T) {
	w, p := newLab(t)
	w.HoldActs(t, true)
	if _, err := p.Create(t.Context(), createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	s := live(t, p, "vm-1")
	supervisorOnly, err := os.FindProcess(s.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := supervisorOnly.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the supervisor to be gone", func() bool {
		st, err := readStat(s.PID)
		return err != nil || st.dead
	})
	_, err = p.Create(t.Context(), createOrder("vm-1", 2))
	wantCode(t, err, fleet.CodeConflict)
	w.HoldActs(t, false)
	if progress, err := settleCreate(t, p, createOrder("vm-1", 1)); err != nil || len(w.ids(t)) != 1 {
		t.Fatalf("%+v, %v; the cloud has %v", progress, err, w.ids(t))
	}
}

func TestOldSessionsAreRemovedAndLivingOnesKept(t *testing.T) {
	w := newToy(t)
	cfg := w.config(t, t.TempDir())
	p := newProvider(t, cfg)
	if _, err := settleCreate(t, p, createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	w.HoldActs(t, true)
	if _, err := p.Create(t.Context(), createOrder("vm-2", 2)); err != nil {
		t.Fatal(err)
	}
	count := func(vm string) int {
		entries, err := os.ReadDir(p.sessions(vm))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	for _, step := range []struct {
		ahead      time.Duration
		one, other int
	}{{0, 1, 1}, {keepSessions - time.Hour, 1, 1}, {keepSessions + time.Hour, 0, 1}} {
		if _, err := New(cfg, &laterClock{ahead: step.ahead}, quietLog()); err != nil {
			t.Fatal(err)
		}
		if a, b := count("vm-1"), count("vm-2"); a != step.one || b != step.other {
			t.Errorf("after %s: %d ended and %d living are kept, want %d and %d", step.ahead, a, b, step.one, step.other)
		}
	}
}

func TestADamagedRecordStopsActsOnItsVMAndSaysSo(t *testing.T) {
	w, p := newLab(t)
	dir := filepath.Join(p.sessions("vm-1"), "create.op-old.1.x")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fileSession), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := p.Create(t.Context(), createOrder("vm-1", 1))
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "lab/vm-1", "damaged", dir, "remove that directory")
	if w.calls(t, VerbCreate) != 0 {
		t.Error("the create ran")
	}
}

func TestSecretsAreInTheEnvironmentOnlyAndMasked(t *testing.T) {
	const secret = "glrt-verysecret"
	w := newToy(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := w.config(t, t.TempDir())
	cfg.Env["RUNNER_TOKEN"] = Value{File: file}
	cfg.Commands[VerbCreate] = []string{script(t, `[ "$RUNNER_TOKEN" = `+secret+` ] || exit 9
echo "token is $RUNNER_TOKEN" >&2; while [ -e "$TOY/hold-create" ]; do sleep 0.02; done; exit 5`)}
	p := newProvider(t, cfg)
	w.HoldActs(t, true)
	progress, err := p.Create(t.Context(), createOrder("vm-1", 1))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log", func() bool {
		progress, err = p.Create(t.Context(), createOrder("vm-1", 1))
		return err != nil || strings.Contains(progress.Detail, "token is")
	})
	if err != nil || progress.Detail != "token is [masked]" {
		t.Errorf("progress says %q, %v", progress.Detail, err)
	}
	s := live(t, p, "vm-1")
	if found := commandsWith(t, secret); len(found) != 0 {
		t.Errorf("the secret is in argv of %v", found)
	}
	for _, name := range []string{fileRequest, fileSession} {
		raw, err := os.ReadFile(s.path(name))
		if err != nil || strings.Contains(string(raw), secret) {
			t.Errorf("%s holds the secret (%v)", name, err)
		}
	}
	w.HoldActs(t, false)
	_, err = settleCreate(t, p, createOrder("vm-1", 1))
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "token is [masked]")
}

func TestTheStateDirectoryIsForItsOwnerOnly(t *testing.T) {
	w := newToy(t)
	root := filepath.Join(t.TempDir(), "exec")
	p := newProvider(t, w.config(t, root))
	if _, err := settleCreate(t, p, createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
