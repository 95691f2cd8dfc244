package exec

import (
	"bufio"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// TestHelperProcess is a process of ours that dies: it starts a create and
// then waits to be killed. It runs only as a child of the tests below.
func TestHelperProcess(t *testing.T) {
	world := os.Getenv("EXEC_HELPER_TOY")
	if world == "" {
		t.Skip("runs only as a child of another test")
	}
	w := &toy{dir: world}
	p := newProvider(t, w.config(t, os.Getenv("EXEC_HELPER_STATE")))
	progress, err := p.Create(t.Context(), createOrder("vm-1", 1))
	fmt.Printf("helper: done=%t err=%v\n", progress.Done, err)
	_, _ = io.Copy(io.Discard, os.Stdin) // until our parent kills us, or is gone itself
}

// startAndDie lets a process start a create and kills that process with
// SIGKILL as soon as the command is recorded.
func startAndDie(t *testing.T, w *toy, stateDir string) {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperProcess$")
	cmd.Env = append(os.Environ(), "EXEC_HELPER_TOY="+w.dir, "EXEC_HELPER_STATE="+stateDir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if want := "helper: done=false err=<nil>\n"; line != want {
		t.Fatalf("the helper says %q (%v), want %q", line, err, want)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
}

func TestACreateSurvivesOurDeathAndIsFoundAgain(t *testing.T) { // T41, T42
	w, stateDir := newToy(t), t.TempDir()
	w.HoldActs(t, true)
	startAndDie(t, w, stateDir)

	p := newProvider(t, w.config(t, stateDir))
	eventually(t, "the running create's log to be shown", func() bool {
		progress, err := p.Create(t.Context(), createOrder("vm-1", 1))
		if err != nil || progress.Done {
			t.Fatalf("the running create answers %+v, %v", progress, err)
		}
		return progress.Detail == "waiting for hold-create"
	})
	_, err := p.Create(t.Context(), createOrder("vm-1", 2))
	wantCode(t, err, fleet.CodeConflict)
	wantText(t, err, "lab/vm-1", "the create command of op-test1, attempt 1", "its log is "+stateDir)

	w.HoldActs(t, false)
	progress, err := settleCreate(t, p, createOrder("vm-1", 1))
	if err != nil {
		t.Fatal(err)
	}
	if ids := w.ids(t); len(ids) != 1 || progress.Instance.ID != ids[0] || w.calls(t, VerbCreate) != 1 {
		t.Fatalf("instance %s; the cloud has %v after %d creates, want exactly one", progress.Instance.ID, ids, w.calls(t, VerbCreate))
	}
}

func TestACreateThatEndedWhileWeWereDeadIsDone(t *testing.T) {
	w, stateDir := newToy(t), t.TempDir()
	w.HoldActs(t, true)
	startAndDie(t, w, stateDir)
	w.HoldActs(t, false)
	p := newProvider(t, w.config(t, stateDir))
	eventually(t, "the command to end by itself", func() bool {
		running, err := p.running(t.Context(), "vm-1")
		return err == nil && len(running) == 0
	})
	progress, err := p.Create(t.Context(), createOrder("vm-1", 1))
	if err != nil || !progress.Done || w.calls(t, VerbCreate) != 1 {
		t.Fatalf("answers %+v, %v after %d creates; want it done by the first", progress, err, w.calls(t, VerbCreate))
	}
}

func TestNothingRunsBeforeItsSessionIsRecorded(t *testing.T) {
	dir := t.TempDir()
	marker := dir + "/marker"
	hear, say, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.CommandContext(t.Context(), "/bin/sh", "-c", supervisor, "sluice-exec", dir, "/usr/bin/touch", marker) //nolint:gosec // fixed
	cmd.ExtraFiles = []*os.File{hear}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = hear.Close()
	_ = say.Close() // what our death does
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 125 {
		t.Errorf("the supervisor ended with %d, want 125", got)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command ran although its session was never recorded")
	}
}
