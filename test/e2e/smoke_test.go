//go:build e2e

package e2e_test

import (
	"context"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// host is a machine with a login on it.
type host struct {
	*machines.Machine
	shell    *stage.Shell
	systemID string
}

// boot makes a machine, waits until its runner is up and says how long that took.
func boot(ctx context.Context, t *testing.T, name string) *host {
	t.Helper()
	began := time.Now()
	m, err := scene.World.Create(ctx, machines.Spec{Name: name, Image: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = scene.World.Delete(context.WithoutCancel(ctx), m.ID) })
	shell, err := scene.Login(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shell.Close)
	h := &host{Machine: m, shell: shell}
	h.await(ctx, t, "active")
	h.systemID = h.run(t, "cat /etc/gitlab-runner/.runner_system_id")
	t.Logf("%s: login and runner active %s after create", name, time.Since(began).Round(time.Millisecond))
	return h
}

func (h *host) run(t *testing.T, script string) string {
	t.Helper()
	out, err := h.shell.Run(script)
	if err != nil {
		t.Fatalf("%s: %v", h.Name, err)
	}
	return out
}

// await waits until the runner's unit is in a state.
func (h *host) await(ctx context.Context, t *testing.T, state string) {
	t.Helper()
	got := ""
	err := stage.Await(ctx, 20*time.Second, "the runner of "+h.Name+" to be "+state, func(context.Context) (bool, error) {
		var err error
		got, err = h.shell.Run("systemctl show --property ActiveState --value gitlab-runner")
		return got == state, err
	})
	if err != nil {
		t.Fatalf("%v; it is %s", err, got)
	}
}

func enqueue(ctx context.Context, t *testing.T, spec simgitlab.JobSpec) int64 {
	t.Helper()
	id, err := scene.GitLab.Enqueue(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// awaitJob waits until a job is as wanted.
func awaitJob(ctx context.Context, t *testing.T, id int64, limit time.Duration, what string, wanted func(simgitlab.JobRecord) bool) simgitlab.JobRecord {
	t.Helper()
	var record simgitlab.JobRecord
	err := stage.Await(ctx, limit, what, func(ctx context.Context) (bool, error) {
		var err error
		record, err = scene.GitLab.Job(ctx, id)
		return wanted(record), err
	})
	if err != nil {
		t.Fatalf("%v; job is %+v", err, record)
	}
	return record
}

func taken(j simgitlab.JobRecord) bool    { return j.Heard }
func finished(j simgitlab.JobRecord) bool { return !j.FinishedAt.IsZero() }

func TestStandInRunnerBehavesAsMeasured(t *testing.T) {
	ctx := t.Context()
	t.Run("machines", func(t *testing.T) {
		t.Parallel()
		one, two := boot(ctx, t, "smoke-1"), boot(ctx, t, "smoke-2")
		if one.systemID == two.systemID || one.systemID == "" {
			t.Fatalf("system_ids %q and %q must differ", one.systemID, two.systemID)
		}
		t.Run("a job runs with its after_script", func(t *testing.T) {
			t.Parallel()
			id := enqueue(ctx, t, simgitlab.JobSpec{Duration: 3 * time.Second, AfterDuration: time.Second, SystemID: one.systemID})
			awaitJob(ctx, t, id, 10*time.Second, "the job to begin", taken)
			j := awaitJob(ctx, t, id, 20*time.Second, "the job to end", finished)
			if j.Verdict != simgitlab.VerdictSucceeded || !j.ScriptEnded || !j.AfterScriptEnded {
				t.Fatalf("job ended as %+v", j)
			}
		})
		t.Run("a plain stop with Fedora's settings cuts the job", func(t *testing.T) {
			t.Parallel()
			id := enqueue(ctx, t, simgitlab.JobSpec{Duration: time.Minute, AfterDuration: time.Second, SystemID: two.systemID})
			awaitJob(ctx, t, id, 10*time.Second, "the job to begin", taken)
			began := time.Now()
			two.run(t, "sudo systemctl stop gitlab-runner")
			j := awaitJob(ctx, t, id, 5*time.Second, "the job to be cut", finished)
			t.Logf("cut %s after the stop", time.Since(began))
			if j.FailureReason != "runner_interrupted" || j.AfterScriptEnded {
				t.Fatalf("job ended as %+v", j)
			}
			two.await(ctx, t, "inactive")
		})
	})
}
