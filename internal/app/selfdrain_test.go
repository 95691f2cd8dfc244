package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// stand is a small world with Sluice in front of it, and a GitLab that signs
// id_tokens.
type stand struct {
	t      *testing.T
	world  *sim.World
	gitlab engine.GitLab // as Sluice sees it
	oidc   *mockoidc.MockOIDC
	url    string
	vms    []string
	fleet  string
}

func newStand(t *testing.T, vms int, change ...func(*config.Config, *engine.Fleet)) *stand {
	t.Helper()
	t.Parallel() // most of a test is waiting
	w, err := sim.NewWorld(sim.Options{Now: time.Now, VMs: vms, Boot: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	s := &stand{t: t, world: w}
	if s.oidc, err = mockoidc.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.oidc.Shutdown() })
	spec := w.Spec()
	spec.MaxUnavailable = 1 // were its own VM the first, the others would wait for it
	spec.GateOnline = 5 * time.Minute
	s.vms, s.fleet = spec.VMs, spec.Name
	f, err := (&Demo{world: w}).fleet(spec)
	if err != nil {
		t.Fatal(err)
	}
	c := &config.Config{
		Store: config.Store{SQLite: filepath.Join(t.TempDir(), "s.db")}, Log: config.Log{Level: "error", Format: "text"},
		Server: config.Server{OIDC: []config.Issuer{{Issuer: s.oidc.Issuer(), Audience: "https://sluice.example.com"}}},
		Access: []config.AccessRule{{
			Claims: map[string]config.Claim{"namespace_path": {{Text: "acme"}}}, Allow: []string{"recreate", "drain"}, Fleets: []string{spec.Name},
		}},
	}
	s.gitlab = f.GitLab
	for _, do := range change {
		do(c, f)
	}
	a := open(t, Options{Config: c, Role: RoleServe, Command: "sluice serve", Version: "test", Log: io.Discard, Fleets: map[string]*engine.Fleet{spec.Name: f}})
	server := httptest.NewServer(a.front())
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// runs starts a job on a VM, which goes on until it is told to end, and waits
// until its container is there.
func (s *stand) runs(vm string) (project, job int64) {
	s.t.Helper()
	id := s.world.GitLab().Enqueue(simgitlab.JobSpec{Name: "recreate-runners", Duration: time.Hour, Timeout: 2 * time.Hour, SystemID: s.await(vm)})
	s.until("the job runs", func() bool {
		h := s.world.Host(vm)
		return h != nil && len(h.Containers()) == 1
	})
	record, ok := s.world.GitLab().Job(id)
	if !ok {
		s.t.Fatal("the job is not there")
	}
	return record.ProjectID, id
}

// ends lets the job end, and wants it to have run until now.
func (s *stand) ends(project, job int64) {
	s.t.Helper()
	if record, _ := s.world.GitLab().Job(job); record.Status != "running" {
		s.t.Errorf("the asking job is %s before its end", record.Status)
	}
	url := fmt.Sprintf("%s/api/v4/projects/%d/jobs/%d/cancel", s.world.URL(), project, job)
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Private-Token", simgitlab.DefaultWriteToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != http.StatusCreated {
		s.t.Fatalf("the job cannot be ended: %s", response.Status)
	}
}

// await waits until a VM's runner has joined, which is when GitLab knows its
// manager, and yields its system_id.
func (s *stand) await(vm string) (systemID string) {
	s.t.Helper()
	s.until(vm+" lives", func() bool {
		h := s.world.Host(vm)
		if h == nil || !h.Up() {
			return false
		}
		if systemID = h.SystemID(); systemID == "" {
			return false
		}
		managers, _, err := s.gitlab.Managers(s.t.Context())
		return err == nil && slices.ContainsFunc(managers, func(m fleet.Manager) bool { return m.SystemID == systemID })
	})
	return systemID
}

// until polls as a pipeline does: faster would be too many requests of one caller.
func (s *stand) until(what string, done func() bool) {
	s.t.Helper()
	for limit := time.Now().Add(5 * time.Minute); !done(); {
		if time.Now().After(limit) {
			s.t.Fatalf("never: %s", what)
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatalf("never: %s", what)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// idToken is what GitLab gives the job.
func (s *stand) idToken(project, job, runner int64) string {
	s.t.Helper()
	now := time.Now()
	token, err := s.oidc.Keypair.SignJWT(jwt.MapClaims{
		"iss": s.oidc.Issuer(), "aud": "https://sluice.example.com", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": "job-" + strconv.FormatInt(job, 10),
		"project_id": strconv.FormatInt(project, 10), "namespace_path": "acme", "project_path": "acme/app", "job_id": strconv.FormatInt(job, 10),
		"ref": "main", "ref_protected": "true", "runner_id": runner, "runner_environment": "self-hosted",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func (s *stand) client(token string) *client.Client {
	s.t.Helper()
	c, err := client.New(client.Options{URL: s.url, Token: token})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *stand) ask(idToken string, vms ...string) *client.Asked {
	s.t.Helper()
	asked, err := s.client(idToken).Ask(s.t.Context(), s.fleet, "1/100/recreate-runners", client.AskBody{Kind: client.AskBodyKindRecreate, Vms: vms})
	if err != nil {
		s.t.Fatal(err)
	}
	if asked.Follow == nil {
		s.t.Fatal("there is nothing to follow with")
	}
	return asked
}

// ended follows an operation to its end, with the token that came with it.
func (s *stand) ended(asked *client.Asked, vm string) client.Operation {
	s.t.Helper()
	follower := s.client(asked.Follow.Token)
	op := operationOn(asked, vm)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("%s: %s, waits for %v, failure %+v", vm, op.Phase, op.Waiting, op.Failure)
			if op.Waiting != nil {
				s.t.Log(*op.Waiting)
			}
		}
	})
	s.until(vm+" is done", func() bool {
		now, err := follower.Operation(s.t.Context(), op.Id)
		if err != nil {
			s.t.Fatal(err)
		}
		op = *now
		return op.Finished
	})
	return op
}

// waitsFor follows a VM's operation until its drain names the job.
func (s *stand) waitsFor(asked *client.Asked, vm string, job int64) {
	s.t.Helper()
	follower := s.client(asked.Follow.Token)
	s.until("the drain of "+vm+" waits for the job", func() bool {
		op, err := follower.Operation(s.t.Context(), operationOn(asked, vm).Id)
		if err != nil {
			s.t.Fatal(err)
		}
		return op.Jobs != nil && len(*op.Jobs) == 1 && (*op.Jobs)[0].Id == job
	})
}

func operationOn(asked *client.Asked, vm string) (op client.Operation) {
	for _, one := range asked.Operations {
		if one.Vm == vm {
			op = one
		}
	}
	return op
}

func (s *stand) unharmed(replaced int) {
	s.t.Helper()
	if sum := s.world.Summary(); sum.Cut != 0 || sum.Orphaned != 0 || sum.Replaced != replaced || len(sum.TokenDamage) != 0 {
		s.t.Errorf("%+v", sum)
	}
}

// Case T65: the job that asks runs on a VM that it asks for. It is told, ends
// (that is its part), and its VM's drain ends with it: nothing is cut, nothing
// waits for itself.
func TestAJobThatAsksForItsOwnVMIsToldAndTheDrainGoesOnWhenItEnds(t *testing.T) {
	for name, prepare := range map[string]func(*stand){
		"GitLab says where it runs": func(*stand) {},
		"its container says where it runs": func(s *stand) {
			s.world.GitLab().Inject(simgitlab.Fault{Kind: simgitlab.FaultStatus, Code: 404, Routes: []string{"GET /projects/:id/jobs/:job_id"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, 1)
			vm := s.vms[0]
			project, job := s.runs(vm)
			prepare(s)
			asked := s.ask(s.idToken(project, job, simgitlab.DefaultRunnerID), vm)
			self := asked.SelfDrain
			if self == nil || !self.Sure || self.Vm == nil || *self.Vm != vm || self.Reason == "" {
				t.Fatalf("self_drain %+v", self)
			}
			s.waitsFor(asked, vm, job)
			s.ends(project, job)
			if op := s.ended(asked, vm); op.Phase != client.OperationPhaseSucceeded {
				t.Errorf("%+v", op)
			}
			s.unharmed(1)
		})
	}
}

func TestOfThreeVMsTheAskingJobsOwnIsTakenLast(t *testing.T) {
	s := newStand(t, 3)
	own := s.vms[0]
	project, job := s.runs(own)
	for _, vm := range s.vms {
		s.await(vm)
	}
	asked := s.ask(s.idToken(project, job, simgitlab.DefaultRunnerID), s.vms...)
	if self := asked.SelfDrain; self == nil || !self.Sure || *self.Vm != own {
		t.Fatalf("self_drain %+v", self)
	}
	for i, op := range asked.Operations {
		if op.Vm != s.vms[i] {
			t.Errorf("answer %d is about %s, asked was %s", i, op.Vm, s.vms[i])
		}
	}
	for _, vm := range s.vms[1:] {
		if op := s.ended(asked, vm); op.Phase != client.OperationPhaseSucceeded {
			t.Errorf("%+v", op)
		}
	}
	s.waitsFor(asked, own, job)
	s.ends(project, job)
	if op := s.ended(asked, own); op.Phase != client.OperationPhaseSucceeded {
		t.Errorf("%+v", op)
	}
	s.unharmed(3)
}

func TestAJobThatAsksForOtherVMsOrRunsElsewhereMayWait(t *testing.T) {
	s := newStand(t, 2)
	project, job := s.runs(s.vms[0])
	if asked := s.ask(s.idToken(project, job, simgitlab.DefaultRunnerID), s.vms[1]); asked.SelfDrain != nil {
		t.Errorf("its own VM was not asked for: %+v", asked.SelfDrain)
	}
	elsewhere := s.client(s.idToken(project, job+1000, 99))
	asked, err := elsewhere.Ask(t.Context(), s.fleet, "another", client.AskBody{Kind: client.AskBodyKindDrain, Vms: []string{s.vms[0]}})
	if err != nil || asked.SelfDrain != nil {
		t.Errorf("it runs on another runner: %+v, %v", asked.SelfDrain, err)
	}
}

func TestAJobOnTheFleetsRunnerThatNobodyFindsMustNotWait(t *testing.T) {
	s := newStand(t, 1)
	s.await(s.vms[0])
	const unknown = 424242 // a job that no host shows and GitLab does not let us see
	asked := s.ask(s.idToken(1, unknown, simgitlab.DefaultRunnerID), s.vms[0])
	if self := asked.SelfDrain; self == nil || self.Sure || self.Vm != nil || self.Reason == "" {
		t.Errorf("self_drain %+v", self)
	}
	if op := s.ended(asked, s.vms[0]); op.Phase != client.OperationPhaseSucceeded {
		t.Errorf("%+v", op)
	}
}

func TestTheContainerIsFoundThoughGitLabHangs(t *testing.T) {
	s := newStand(t, 1)
	project, job := s.runs(s.vms[0])
	s.world.GitLab().Inject(simgitlab.Fault{Kind: simgitlab.FaultHang, Routes: []string{"GET /projects/:id/jobs/:job_id"}})
	asked, err := s.client(s.idToken(project, job, simgitlab.DefaultRunnerID)).Ask(t.Context(), s.fleet, "k",
		client.AskBody{Kind: client.AskBodyKindDrain, Vms: s.vms})
	if err != nil || asked.SelfDrain == nil || !asked.SelfDrain.Sure {
		t.Errorf("%+v, %v", asked, err)
	}
}
