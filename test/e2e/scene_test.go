//go:build e2e

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// fleetName is the fleet of every scene.
const fleetName = "lab"

// scene is one scenario's world: its own GitLab, machines and controller, so that faults
// of one scenario don't touch another.
type scene struct {
	*stage.Stage
	t      *testing.T
	ctx    context.Context
	config string // the controller's sluice.yaml
}

// newScene makes a world with running machines of these names. It is torn down with the
// test; logs of a failed one are printed.
func newScene(t *testing.T, names ...string) *scene {
	t.Helper()
	s := newStage(t)
	s.configure(stage.Config{Fleet: fleetName, VMs: names})
	s.boot(names...)
	return s
}

// newStage is a scene without machines yet.
func newStage(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	set, err := stage.Set(t.Context(), stage.Options{Name: nextWorld(), Programs: programs, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{Stage: set, t: t, ctx: t.Context()}
	t.Cleanup(s.strike)
	return s
}

// boot makes machines of these names.
func (s *scene) boot(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if _, err := s.World.Create(s.ctx, machines.Spec{Name: name, Image: "v1"}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// configure writes the controller's config anew.
func (s *scene) configure(c stage.Config) {
	s.t.Helper()
	var err error
	if s.config, err = s.WriteConfig("controller", c); err != nil {
		s.t.Fatal(err)
	}
}

// strike ends the scene. GitLab's word on the token is asked first: no scenario may have
// made a call that hurts it.
func (s *scene) strike() {
	ctx := context.WithoutCancel(s.ctx)
	if ledger, err := s.GitLab.Ledger(ctx); err != nil {
		s.t.Errorf("read the ledger at the end: %v", err)
	} else if len(ledger.Damage) > 0 {
		s.t.Errorf("the shared token was hurt: %+v", ledger.Damage)
	}
	if s.t.Failed() {
		s.printLogs()
	}
	if err := s.Strike(ctx); err != nil {
		s.t.Errorf("strike the scene: %v", err)
	}
}

func (s *scene) printLogs() {
	files, _ := filepath.Glob(s.Path("logs", "*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		s.t.Logf("%s:\n%s", filepath.Base(file), text)
	}
	s.printJournals()
	if visits, err := s.World.Visits(); err == nil {
		for _, v := range visits {
			if v.Verb != "describe" && v.Verb != "list" {
				s.t.Logf("visit %s %+v", v.At.Format("15:04:05.000"), v)
			}
		}
	}
	if ledger, err := s.GitLab.Ledger(context.WithoutCancel(s.ctx)); err == nil {
		for _, job := range ledger.Jobs {
			s.t.Logf("job %+v", job)
		}
	}
}

// printJournals prints what the services of the living machines logged.
func (s *scene) printJournals() {
	all, err := s.World.List()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 5*time.Second)
	defer cancel()
	for _, m := range all {
		cmd, err := s.World.Inside(ctx, m, "journalctl", "--no-pager", "--output=short-precise", "--lines=60", "--unit=gitlab-runner", "--unit=sluice")
		if err != nil {
			continue
		}
		out, _ := cmd.CombinedOutput()
		s.t.Logf("journal of %s:\n%s", m.Name, out)
	}
}

// await waits for something that may err in between.
func (s *scene) await(limit time.Duration, what string, ask func() (bool, error)) {
	s.t.Helper()
	err := stage.Await(s.ctx, limit, what, func(context.Context) (bool, error) { return ask() })
	if err != nil {
		s.t.Fatal(err)
	}
}

// machine yields what the cloud says of a name now; nil if there is none.
func (s *scene) machine(name string) *machines.Machine {
	s.t.Helper()
	all, err := s.World.List()
	if err != nil {
		s.t.Fatal(err)
	}
	var found *machines.Machine
	for _, m := range all {
		if m.Name == name {
			if found != nil {
				s.t.Fatalf("two machines are named %s: %s and %s", name, found.ID, m.ID)
			}
			found = m
		}
	}
	return found
}

// deletion yields the one delete of an instance at the cloud's front desk.
func (s *scene) deletion(instance string) machines.Visit {
	s.t.Helper()
	visits, err := s.World.Visits()
	if err != nil {
		s.t.Fatal(err)
	}
	var found []machines.Visit
	for _, v := range visits {
		if v.Verb == "delete" && !v.Ended && v.Instance == instance {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("%d deletes of %s, want 1: %+v", len(found), instance, found)
	}
	return found[0]
}

// queue puts a job in the queue, for one host if it is not nil.
func (s *scene) queue(on *host, spec simgitlab.JobSpec) int64 {
	s.t.Helper()
	if on != nil {
		spec.SystemID = on.systemID
	}
	id, err := s.GitLab.Enqueue(s.ctx, spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// begin queues a job for a host and waits until its script runs there.
func (s *scene) begin(on *host, spec simgitlab.JobSpec) int64 {
	s.t.Helper()
	id := s.queue(on, spec)
	s.awaitJob(id, 15*time.Second, "begin", func(j simgitlab.JobRecord) bool { return j.Heard })
	return id
}

// awaitContainer waits until a job's container runs: about a second after its assignment,
// while GitLab hears of it only with the first patch.
func (s *scene) awaitContainer(on *host, id int64) {
	s.t.Helper()
	s.await(15*time.Second, "the job's container", func() (bool, error) {
		return strings.Contains(on.run("podman ps --format '{{.Names}}'"), jobContainer(id)), nil
	})
}

// awaitJob waits until a job is as wanted.
func (s *scene) awaitJob(id int64, limit time.Duration, what string, wanted func(simgitlab.JobRecord) bool) simgitlab.JobRecord {
	s.t.Helper()
	var record simgitlab.JobRecord
	s.await(limit, "the job to "+what, func() (bool, error) {
		var err error
		record, err = s.GitLab.Job(s.ctx, id)
		return wanted(record), err
	})
	return record
}

func finished(j simgitlab.JobRecord) bool { return !j.FinishedAt.IsZero() }

// mustHaveSucceeded fails unless the job ended by itself, after_script included.
func (s *scene) mustHaveSucceeded(id int64) simgitlab.JobRecord {
	s.t.Helper()
	j, err := s.GitLab.Job(s.ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	if j.Verdict != simgitlab.VerdictSucceeded || !j.ScriptEnded || !j.AfterScriptEnded {
		trace, err := s.GitLab.Trace(s.ctx, j)
		s.t.Errorf("job %d ended as %+v\n%s%v", id, j, trace, err)
	}
	return j
}

// mustHaveOutlived fails unless the job ended by itself, and the host was deleted only
// after that.
func (s *scene) mustHaveOutlived(h *host, job int64) {
	s.t.Helper()
	j := s.mustHaveSucceeded(job)
	if deleted := s.deletion(h.ID); deleted.At.Before(j.FinishedAt) {
		s.t.Errorf("%s was deleted at %s, before its job's result was in at %s", h.Name, deleted.At, j.FinishedAt)
	}
}

// longJob is a job with an after_script, as every job of these scenarios.
func longJob(d time.Duration) simgitlab.JobSpec {
	return simgitlab.JobSpec{Duration: d, AfterDuration: time.Second}
}
