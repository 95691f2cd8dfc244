package doctor

import (
	"context"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

type still struct{}

func (still) Now() time.Time { return noon }

// ward is a fleet of two healthy VMs, a and b, for tests to make ill. Calls
// that a doctor must not make panic: the embedded ports are nil.
type ward struct {
	engine.Hosts
	engine.Machines
	engine.GitLab
	engine.Registrar

	spec      fleet.Spec
	instances []fleet.Instance
	listErr   error
	prepare   error
	facts     map[string]*fleet.HostFacts
	inspect   map[string]error
	managers  []fleet.Manager
	gitlabErr error
	paused    bool
	tokenErr  error
	token     TokenInfo
	expiry    time.Time
	sum       string
	unseen    []string
	unseenErr error
	anyKey    bool
	shared    bool // another fleet has the same runner entry

	write      TokenInfo
	writeErr   error
	unwritable []string
}

func newWard() *ward {
	w := &ward{
		spec: fleet.Spec{
			Name: "gcp", VMs: []string{"a", "b"}, RunnerID: 7, HasGitLab: true, HasRunnerToken: true, HasWriteToken: true, Recovery: fleet.RecoveryPolicy{Orphans: true},
			Host: fleet.HostSettings{User: "fedora", RunnerUser: "fedora", Unit: "gitlab-runner.service"},
		},
		facts: map[string]*fleet.HostFacts{}, inspect: map[string]error{},
		token: TokenInfo{Scopes: []string{"read_api"}, CanRead: true}, sum: "aa",
		write: TokenInfo{Scopes: []string{"api"}, CanRead: true, CanWrite: true},
	}
	for i, vm := range w.spec.VMs {
		id := "s_" + vm
		w.instances = append(w.instances, fleet.Instance{ID: "i-" + vm, VM: vm, Presence: fleet.PresenceRunning, Ready: true, Address: "10.0.0.1"})
		w.managers = append(w.managers, fleet.Manager{ID: int64(i), SystemID: id, Status: "online", Execution: fleet.ExecutionIdle})
		w.facts[vm] = &fleet.HostFacts{
			Reading:    fleet.HostReading{Unit: fleet.UnitState{ActiveState: "active", MainPID: 100}},
			UnitLoaded: true, RunnerPIDs: []int{100}, MainCommand: []string{"/usr/bin/gitlab-runner", "run"},
			SystemIDs: []string{id}, ConfigKnown: true, Entries: []fleet.RunnerEntry{{Name: vm, TokenSHA256: "aa"}},
		}
	}
	return w
}

func (w *ward) List(context.Context) ([]fleet.Instance, error) { return w.instances, w.listErr }

func (w *ward) Prepare(context.Context, string, string) (fleet.Prepared, error) {
	return fleet.Prepared{}, w.prepare
}

func (w *ward) Inspect(_ context.Context, t engine.Target) (*fleet.HostFacts, error) {
	return w.facts[t.VM], w.inspect[t.VM]
}

func (w *ward) Runner(context.Context) (engine.RunnerInfo, error) {
	return engine.RunnerInfo{ID: w.spec.RunnerID, Paused: w.paused}, w.gitlabErr
}

func (w *ward) Managers(context.Context) ([]fleet.Manager, time.Time, error) {
	return w.managers, noon, w.gitlabErr
}

func (w *ward) TokenAlive(context.Context) error { return w.tokenErr }

// examine looks at the ward as the app sets it up.
func (w *ward) examine(t *testing.T, vms ...string) Report {
	t.Helper()
	p := Patient{Fleet: &engine.Fleet{Spec: w.spec, Hosts: w, Machines: w}, RunnerToken: w.sum, AnyHostKey: w.anyKey}
	if w.spec.HasGitLab {
		p.GitLab = w
		p.Token = func(context.Context) (TokenInfo, error) { return w.token, nil }
		p.Version = func(context.Context) (string, error) { return "17.11.2", nil }
		p.UnseenProjects = func(context.Context) ([]string, error) { return w.unseen, w.unseenErr }
		p.TokenExpiry = func(context.Context) (time.Time, error) { return w.expiry, nil }
	}
	if w.spec.HasWriteToken {
		p.WriteToken = func(context.Context) (TokenInfo, error) { return w.write, w.writeErr }
		p.UnwritableProjects = func(context.Context) ([]string, error) { return w.unwritable, nil }
	}
	if w.spec.HasRunnerToken {
		p.Registrar = w
	}
	fleets := map[string]Patient{"gcp": p}
	if w.shared {
		fleets["twin"] = Patient{Fleet: &engine.Fleet{Spec: w.spec}}
	}
	report, err := New(Options{
		Fleets: fleets, Clock: still{},
		Spec: func(string) (fleet.Spec, error) { return w.spec, nil },
	}).Examine(t.Context(), "gcp", vms)
	if err != nil {
		t.Fatal(err)
	}
	return report
}
