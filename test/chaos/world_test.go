package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

const vm = "runner-01"

// lifeLimit is when a child counts as stuck.
const lifeLimit = 2 * time.Minute

// world is one simulated VM with a running job, and the journal of a Sluice
// that lives and dies in processes of its own.
type world struct {
	*sim.World
	t    *testing.T
	in   instructions
	job  int64
	sees *store.Store
	free *atomic.Bool // the job may end
	stay atomic.Bool  // not before this life ends: it is to die in the wait for that
}

// newWorld makes a world whose job ends when the operation has come as far as
// mayEnd says, however slow the machine is.
func newWorld(t *testing.T, mayEnd func(*fleet.Operation) bool) *world {
	t.Helper()
	free := new(atomic.Bool)
	w, err := sim.NewWorld(sim.Options{
		Now: time.Now, VMs: 1, Boot: 200 * time.Millisecond, Create: 100 * time.Millisecond, Delete: 100 * time.Millisecond,
		Host: func(o *simhost.Options) { o.Hold = func() bool { return !free.Load() } },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	id := w.GitLab().Enqueue(simgitlab.JobSpec{Duration: 100 * time.Millisecond, AfterDuration: 200 * time.Millisecond})
	if err := w.AwaitBusy(t.Context()); err != nil {
		t.Fatal(err)
	}
	key, err := w.PrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	out := &world{World: w, t: t, job: id, free: free}
	out.in = instructions{
		Journal: filepath.Join(t.TempDir(), "sluice.db"), GitLab: w.URL(), ReadToken: w.ReadToken(), RunnerToken: w.RunnerToken(),
		Cloud: serveCloud(t, w.Cloud()), SSHKey: string(key), Spec: w.Spec(),
	}
	if out.sees, err = store.Open(t.Context(), store.Options{Path: out.in.Journal, Clock: wallClock{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := out.sees.Close(); err != nil {
			t.Error(err)
		}
	})
	out.letTheJobEnd(mayEnd)
	return out
}

// letTheJobEnd watches the journal from outside, and ends with the test.
func (w *world) letTheJobEnd(mayEnd func(*fleet.Operation) bool) {
	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	watching.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for !w.free.Load() {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			ops, err := w.sees.Operations(ctx, control.Filter{Limit: 1})
			if err == nil && len(ops) == 1 && mayEnd(&ops[0]) && !w.stay.Load() {
				w.free.Store(true)
			}
		}
	})
	w.t.Cleanup(func() { stop(); watching.Wait() })
}

// ask stores an operation that no engine knows of yet.
func (w *world) ask(kind fleet.Kind, change func(*fleet.Request)) {
	w.t.Helper()
	id, err := fleet.NewOperationID(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	now := time.Now().Round(0).UTC()
	op := fleet.Operation{
		ID: id, Fleet: w.in.Spec.Name, VM: vm, Kind: kind, Phase: fleet.PhaseQueued, CreatedAt: now, UpdatedAt: now, PhaseSince: now,
		Request: fleet.Request{Policy: w.in.Spec.Drain, By: fleet.Actor{Name: "chaos"}},
	}
	if change != nil {
		change(&op.Request)
	}
	if _, err := w.sees.Insert(w.t.Context(), []fleet.Operation{op}, control.Key{}, nil); err != nil {
		w.t.Fatal(err)
	}
	w.in.Operation = id
}

// live runs a Sluice until its operation has ended or it was killed. moving is
// how long after the start of the process the operation was looked at.
func (w *world) live(die, lose string) (killed bool, moving time.Duration) {
	w.t.Helper()
	w.in.Die, w.in.Lose = die, lose
	w.stay.Store(strings.HasPrefix(die, "await:"))
	defer w.stay.Store(false)
	raw, err := json.Marshal(w.in)
	if err != nil {
		w.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), lifeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVar+"="+string(raw))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if lines.Scan() && lines.Text() == "moving" {
		moving = time.Since(began)
	}
	err = cmd.Wait()
	if err != nil && (die == "" || ctx.Err() != nil) {
		w.t.Fatalf("the child failed: %v\n%s%s%+v", err, stderr.String(), w.story(), w.operation())
	}
	return err != nil, moving
}

func (w *world) operation() *fleet.Operation {
	w.t.Helper()
	op, err := w.sees.Operation(w.t.Context(), w.in.Operation)
	if err != nil {
		w.t.Fatal(err)
	}
	return op
}

// story renders the event log of the operation, for a failing test.
func (w *world) story() string {
	facts, err := w.sees.Facts(w.t.Context(), 0, w.in.Operation, 1000)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, f := range facts {
		b.WriteString(f.At.Format("15:04:05.000 ") + string(f.Kind) + " " + f.Text + "\n")
	}
	return b.String()
}
