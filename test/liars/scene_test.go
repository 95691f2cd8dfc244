package liars

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// The client's reading routes, as its metrics name them.
const (
	managersRoute = "GET /runners/:id/managers"
	jobsRoute     = "GET /runners/:id/jobs"
)

var readings = []string{managersRoute, jobsRoute, "GET /runners/:id"}

// scene is a fleet of enginetest whose GitLab is a server that speaks HTTP, and
// whose runners speak with it.
type scene struct {
	*enginetest.World
	t    testing.TB
	lab  *simgitlab.Server
	wire *wire

	jobs  []*job
	beats map[string]time.Time // last contact by VM and process
	late  time.Duration        // results are so late
	quiet bool                 // runners make no contact
}

// job is one that a VM's runner has taken.
type job struct {
	simgitlab.JobPayload
	vm   *enginetest.VM
	ends time.Time
	done bool
}

// play runs a test in a bubble of synctest: the client's pauses take no time.
func play(t *testing.T, run func(*testing.T)) {
	t.Helper()
	synctest.Test(t, run)
}

// newScene makes a fleet; change may alter the GitLab's configuration.
func newScene(t testing.TB, vms []string, change func(*simgitlab.Config)) *scene {
	t.Helper()
	s := &scene{World: enginetest.New(vms...), t: t, beats: map[string]time.Time{}}
	config := simgitlab.Config{Now: s.Now}
	if change != nil {
		change(&config)
	}
	s.lab = simgitlab.New(config)
	s.wire = &wire{lab: s.lab, before: s.runners, counts: map[string]int{}, hosts: map[string]int{}}
	in, err := gitlab.New(gitlab.Config{
		URL: "http://gitlab.sim", Token: simgitlab.DefaultUserToken, Now: s.Now,
		Transport: s.wire, Rate: 10_000, Observe: s.wire.seen,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Spec.RunnerID = simgitlab.DefaultRunnerID
	s.GitLab, s.Registrar = in.Entry(simgitlab.DefaultRunnerID), in.Registrar(simgitlab.DefaultRunnerToken)
	s.Points.At = func(string) { s.wire.pass() }
	s.runners()
	return s
}

// runners lets every runner do what it did since: polls, and results of jobs
// that have ended.
func (s *scene) runners() {
	for _, vm := range s.VMs {
		if !vm.Gone.IsZero() && !vm.Gone.After(s.Now()) {
			s.lab.VMGone(vm.SystemID)
			continue
		}
		if vm.Off || vm.Never || vm.Unit.MainPID == 0 || s.quiet {
			continue
		}
		process := fmt.Sprintf("%s %d", vm.ID, vm.Unit.MainPID)
		if last, ok := s.beats[process]; ok && s.Now().Sub(last) < time.Minute {
			continue
		}
		if code, _ := s.post(http.MethodPost, "/jobs/request", s.asks(vm)); code == http.StatusNoContent {
			s.beats[process] = s.Now()
		}
	}
	for _, j := range s.jobs {
		if j.done || j.vm.Busy == j.ID || s.Now().Before(j.ends.Add(s.late)) || slices.Contains(s.Cut, j.ID) {
			continue
		}
		code, _ := s.post(http.MethodPut, fmt.Sprintf("/jobs/%d", j.ID), map[string]string{"token": j.Token, "state": "success"})
		j.done = code == http.StatusOK
	}
}

func (*scene) asks(vm *enginetest.VM) map[string]any {
	return map[string]any{"token": simgitlab.DefaultRunnerToken, "system_id": vm.SystemID, "info": map[string]string{"name": vm.Name}}
}

// post speaks with GitLab as a runner does, past the client.
func (s *scene) post(method, path string, body any) (int, []byte) {
	s.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	s.lab.ServeHTTP(rec, httptest.NewRequestWithContext(s.t.Context(), method, "/api/v4"+path, bytes.NewReader(raw)))
	return rec.Code, rec.Body.Bytes()
}

// assign has GitLab give the VM a job that its runner never hears of.
func (s *scene) assign(vm string, spec simgitlab.JobSpec) simgitlab.JobPayload {
	s.t.Helper()
	spec.SystemID = s.VM(vm).SystemID
	s.lab.Enqueue(spec)
	var p simgitlab.JobPayload
	code, body := s.post(http.MethodPost, "/jobs/request", s.asks(s.VM(vm)))
	if err := json.Unmarshal(body, &p); err != nil || code != http.StatusCreated {
		s.t.Fatalf("the job was not assigned: %d %s", code, body)
	}
	return p
}

// start has the VM take a job and run it for a time.
func (s *scene) start(vm string, spec simgitlab.JobSpec, length time.Duration) int64 {
	s.t.Helper()
	p := s.assign(vm, spec)
	s.Job(vm, p.ID, length)
	s.jobs = append(s.jobs, &job{JobPayload: p, vm: s.VM(vm), ends: s.Now().Add(length)})
	return p.ID
}

// speak has the runner write the first line of the job's trace.
func (s *scene) speak(id int64) {
	s.t.Helper()
	for _, j := range s.jobs {
		if j.ID != id {
			continue
		}
		rec := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(s.t.Context(), http.MethodPatch, fmt.Sprintf("/api/v4/jobs/%d/trace", id), strings.NewReader("hello\n"))
		req.Header.Set("Job-Token", j.Token)
		req.Header.Set("Content-Range", "0-5")
		if s.lab.ServeHTTP(rec, req); rec.Code != http.StatusAccepted {
			s.t.Fatalf("the trace was not taken: %d %s", rec.Code, rec.Body)
		}
	}
}

// run has the VM take a job, and its runner speak of it.
func (s *scene) run(vm string, length time.Duration) int64 {
	s.t.Helper()
	id := s.start(vm, simgitlab.JobSpec{}, length)
	s.speak(id)
	return id
}

// mustReplace fails unless a recreate ended as promised: one VM, the new one,
// serving; no job cut, the token untouched.
func (s *scene) mustReplace(id, vm, old string) {
	s.t.Helper()
	s.mustBeWhole()
	live := s.Living(vm)
	if op := s.Op(id); op.Phase != fleet.PhaseSucceeded || len(live) != 1 || live[0].ID == old || !live[0].Serving() {
		s.t.Fatalf("%s with %d VMs of the name: %s %s\n%s", op.Phase, len(live), op.Waiting, op.ErrMessage, s.Story())
	}
}

// mustStay fails unless the VM was never deleted and serves again, and the
// operation has failed with words that hold these.
func (s *scene) mustStay(id, vm, old string, says ...string) {
	s.t.Helper()
	s.mustBeWhole()
	live := s.Living(vm)
	op := s.Op(id)
	if op.Phase != fleet.PhaseFailed || len(live) != 1 || live[0].ID != old || !live[0].Serving() || s.Calls["delete"] != 0 {
		s.t.Fatalf("%s with %d VMs of the name, %d deletes: %s %s\n%s", op.Phase, len(live), s.Calls["delete"], op.Waiting, op.ErrMessage, s.Story())
	}
	for _, part := range says {
		if !strings.Contains(op.ErrMessage, part) {
			s.t.Errorf("the operation failed with %q, which does not say %q", op.ErrMessage, part)
		}
	}
}

// mustBeWhole fails if a job that a runner had was cut, the token hurt, or a
// request sent elsewhere.
func (s *scene) mustBeWhole() {
	s.t.Helper()
	ledger := s.lab.Ledger()
	if len(s.Cut) > 0 || len(ledger.Damage) > 0 {
		s.t.Fatalf("cut %v, damage %v\n%s", s.Cut, ledger.Damage, s.Story())
	}
	for _, rec := range ledger.Jobs {
		if rec.Heard && rec.Verdict == simgitlab.VerdictCut {
			s.t.Fatalf("job %d was cut (%s)\n%s", rec.ID, rec.FailureReason, s.Story())
		}
	}
	for host := range s.wire.hosts {
		if host != "gitlab.sim" {
			s.t.Fatalf("a request went to %s", host)
		}
	}
}

// atStop lets something happen just before intake is stopped. The stop takes a
// moment: on a discrete clock what was read before it would else be as young.
func (s *scene) atStop(do func()) {
	s.Fences["stop"] = func() {
		s.Advance(100 * time.Millisecond)
		do()
	}
}

// faultAtStop begins a fault with the stop; For is by the discrete clock.
func (s *scene) faultAtStop(f simgitlab.Fault) {
	if len(f.Routes) == 0 {
		f.Routes = readings
	}
	s.atStop(func() { s.lab.Inject(f) })
}
