package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// What is asserted here was measured on the real runner (facts/runner-host.md).

func TestQuitFinishesTheJobWithItsAfterScriptAndTakesNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	id := w.job(t, simgitlab.JobSpec{Script: []string{"sleep 1.5"}, AfterScript: []string{"sleep 0.3"}})
	w.signal(t, syscall.SIGQUIT)
	second := w.gitlab.Enqueue(simgitlab.JobSpec{})
	w.signal(t, syscall.SIGQUIT) // harmless
	if status := w.exitStatus(t, 10*time.Second); status != 0 {
		t.Fatalf("exit status %d, want 0", status)
	}
	if j := w.record(id); j.Verdict != simgitlab.VerdictSucceeded || !j.AfterScriptEnded {
		t.Errorf("the job ended as %+v", j)
	}
	if j := w.record(second); j.Verdict != simgitlab.VerdictPending {
		t.Errorf("a job queued after the signal was taken: %+v", j)
	}
}

func TestQuitCutsAnIdlePollAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	began := time.Now()
	w.signal(t, syscall.SIGQUIT)
	if status := w.exitStatus(t, 5*time.Second); status != 0 {
		t.Fatalf("exit status %d, want 0", status)
	}
	t.Logf("gone %s after SIGQUIT", time.Since(began))
}

func TestTermEndsTheJobAsInterrupted(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string][]syscall.Signal{
		"TERM":            {syscall.SIGTERM},
		"INT":             {syscall.SIGINT},
		"QUIT, then TERM": {syscall.SIGQUIT, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			id := w.job(t, simgitlab.JobSpec{Script: []string{"sleep 60"}, AfterScript: []string{"true"}})
			for _, sig := range signals {
				w.signal(t, sig)
			}
			w.exitStatus(t, 5*time.Second)
			if j := w.record(id); j.FailureReason != "runner_interrupted" || j.AfterScriptEnded {
				t.Errorf("the job ended as %+v", j)
			}
		})
	}
}

func TestKillOrphansTheJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	id := w.job(t, simgitlab.JobSpec{Script: []string{"sleep 1"}})
	w.signal(t, syscall.SIGKILL)
	w.exitStatus(t, 5*time.Second)
	if j := w.record(id); j.Status != simgitlab.StatusRunning {
		t.Errorf("the job is %+v, want running for good", j)
	}
}

func TestResultIsDeliveredWhenGitLabIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.gitlab.Inject(simgitlab.Fault{Kind: simgitlab.FaultStatus, Code: http.StatusInternalServerError, FinalUpdateOnly: true, For: 2 * time.Second})
	id := w.job(t, simgitlab.JobSpec{Script: []string{"true"}})
	w.signal(t, syscall.SIGQUIT)
	if status := w.exitStatus(t, 15*time.Second); status != 0 {
		t.Fatalf("exit status %d, want 0", status)
	}
	if j := w.record(id); j.Verdict != simgitlab.VerdictSucceeded {
		t.Errorf("the job ended as %+v", j)
	}
}

func TestConcurrentIsHonoured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	for range 3 {
		w.gitlab.Enqueue(simgitlab.JobSpec{Script: []string{"sleep 1"}})
	}
	most := 0
	poll(t, "all jobs to succeed", func() bool {
		ledger := w.gitlab.Ledger()
		most = max(most, ledger.Running)
		return ledger.Succeeded == 3
	})
	if most != 2 {
		t.Errorf("%d jobs at once, want 2", most)
	}
}

func TestNoSlotsIsFatal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("concurrent = 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := load(file); err == nil || !strings.Contains(err.Error(), "no jobs will be processed") {
		t.Errorf("load: %v", err)
	}
}

func TestFailedScriptSaysItsExitCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	id := w.job(t, simgitlab.JobSpec{Script: []string{"exit 7"}, AfterScript: []string{"true"}})
	poll(t, "the job to end", func() bool { return !w.record(id).FinishedAt.IsZero() })
	if j := w.record(id); j.FailureReason != "script_failure" || !j.AfterScriptEnded {
		t.Errorf("the job ended as %+v", j)
	}
}

func TestSystemIDIsTheHostsAndStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	machine := filepath.Join(dir, "machine-id")
	write := func(id string) {
		if err := os.WriteFile(machine, []byte(id+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	identify := func(file string) string {
		id, err := systemID(filepath.Join(dir, file), machine)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	write("aaaa")
	first := identify("one")
	if again := identify("two"); again != first || len(first) != len("s_")+12 {
		t.Errorf("the same host calls itself %s and %s", first, again)
	}
	write("bbbb")
	if kept := identify("one"); kept != first {
		t.Errorf("the file says %s, the runner %s", first, kept)
	}
	if other := identify("three"); other == first {
		t.Errorf("two hosts call themselves %s", other)
	}
}
