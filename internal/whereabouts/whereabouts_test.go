package whereabouts

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var job = Job{Project: 42, ID: 7}

// gitlab says where the job is; the rest of the port is not asked for.
type gitlab struct {
	engine.GitLab
	place fleet.JobPlace
	err   error
}

func (g gitlab) Place(context.Context, int64, int64) (fleet.JobPlace, error) { return g.place, g.err }

type hosts struct {
	engine.Hosts
	readings map[string]*fleet.HostReading // by VM; none = out of reach
}

func (h hosts) Look(_ context.Context, t engine.Target) (*fleet.HostReading, error) {
	if r := h.readings[t.VM]; r != nil {
		return r, nil
	}
	return nil, fleet.Errorf(fleet.CodeUnavailable, "out of reach")
}

type machines struct {
	engine.Machines
	err error
}

func (m machines) List(context.Context) ([]fleet.Instance, error) {
	return []fleet.Instance{
		{ID: "1", VM: "a", Address: "a:22", Presence: fleet.PresenceRunning},
		{ID: "2", VM: "b", Address: "b:22", Presence: fleet.PresenceRunning},
		{ID: "3", VM: "stranger", Address: "c:22", Presence: fleet.PresenceRunning},
	}, m.err
}

type rows []fleet.VM

func (r rows) VMs(context.Context, string) ([]fleet.VM, error) { return r, nil }

func row(vm, systemID string) fleet.VM {
	return fleet.VM{Ref: fleet.Ref{Fleet: "f", VM: vm}, Incarnation: fleet.Incarnation{SystemID: systemID}}
}

func reading(systemID string, jobs ...int64) *fleet.HostReading {
	r := &fleet.HostReading{Subject: fleet.Subject{Incarnation: fleet.Incarnation{SystemID: systemID}}, ContainersKnown: true}
	for _, id := range jobs {
		r.Containers = append(r.Containers, fleet.Container{JobID: id})
	}
	return r
}

func TestAJobIsFoundByGitLabsWordElseByItsContainerAndNeverGuessed(t *testing.T) {
	on := func(systemID string) gitlab { return gitlab{place: fleet.JobPlace{RunnerID: 9, SystemID: systemID}} }
	silent := gitlab{err: fleet.Errorf(fleet.CodeNotFound, "no such job")}
	both := map[string]*fleet.HostReading{"a": reading("s_a"), "b": reading("s_b")}
	for name, c := range map[string]struct {
		gitlab   engine.GitLab
		rows     rows
		readings map[string]*fleet.HostReading
		listErr  error
		want     Place
	}{
		"the stored system_id":                       {on("s_b"), rows{row("a", "s_a"), row("b", "s_b")}, nil, nil, Place{VM: "b", Reason: "system_id s_b"}},
		"a system_id that only the host tells":       {on("s_b"), nil, both, nil, Place{VM: "b", Reason: "system_id s_b"}},
		"two rows with one system_id: the hosts say": {on("s_b"), rows{row("a", "s_b"), row("b", "s_b")}, both, nil, Place{VM: "b", Reason: "system_id s_b"}},
		"two hosts with one system_id":               {on("s_b"), nil, map[string]*fleet.HostReading{"a": reading("s_b"), "b": reading("s_b")}, nil, Place{Reason: "several VMs"}},
		"a system_id that no host has":               {on("s_c"), nil, both, nil, Place{Elsewhere: true, Reason: "none of the fleet's VMs has"}},
		"the same, and a host is silent":             {on("s_c"), nil, map[string]*fleet.HostReading{"a": reading("s_a")}, nil, Place{Reason: "1 of 2 answered"}},
		"a container":                                {silent, nil, map[string]*fleet.HostReading{"a": reading("s_a", 7), "b": reading("s_b", 8)}, nil, Place{VM: "a", Reason: "container of job 7"}},
		"a container, without a GitLab token":        {nil, nil, map[string]*fleet.HostReading{"b": reading("", 7)}, nil, Place{VM: "b", Reason: "container of job 7"}},
		"two containers":                             {silent, nil, map[string]*fleet.HostReading{"a": reading("s_a", 7), "b": reading("s_b", 7)}, nil, Place{Reason: "several VMs"}},
		"GitLab's word before a container":           {on("s_b"), nil, map[string]*fleet.HostReading{"a": reading("s_a", 8), "b": reading("s_b")}, nil, Place{VM: "b", Reason: "system_id s_b"}},
		"nothing":                                    {silent, nil, both, nil, Place{Reason: "no host of the fleet shows job 7 (2 of 2 answered)"}},
		"no provider":                                {silent, nil, both, fleet.Errorf(fleet.CodeUnavailable, "no"), Place{Reason: "neither GitLab nor the provider"}},
		"it has ended":                               {gitlab{place: fleet.JobPlace{RunnerID: 9, SystemID: "s_a", Ended: true}}, rows{row("a", "s_a")}, nil, nil, Place{Elsewhere: true, Reason: "has ended"}},
		"another runner entry":                       {gitlab{place: fleet.JobPlace{RunnerID: 10, SystemID: "s_a"}}, rows{row("a", "s_a")}, nil, nil, Place{Elsewhere: true, Reason: "runs on runner 10"}},
		"no manager is linked yet":                   {on(""), rows{row("a", "")}, map[string]*fleet.HostReading{"a": reading("", 7)}, nil, Place{VM: "a", Reason: "container of job 7"}},
		"a VM that is no member shows it":            {silent, nil, map[string]*fleet.HostReading{"stranger": reading("s_x", 7)}, nil, Place{Reason: "0 of 2 answered"}},
	} {
		f := &engine.Fleet{
			Spec:  fleet.Spec{Name: "f", VMs: []string{"a", "b"}, RunnerID: 9},
			Hosts: hosts{readings: c.readings}, Machines: machines{err: c.listErr}, GitLab: c.gitlab,
		}
		finder := New(Options{Fleets: map[string]*engine.Fleet{"f": f}, Store: c.rows, Log: slog.New(slog.DiscardHandler)})
		got := finder.Locate(t.Context(), "f", job)
		if got.VM != c.want.VM || got.Elsewhere != c.want.Elsewhere || !strings.Contains(got.Reason, c.want.Reason) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := New(Options{Log: slog.New(slog.DiscardHandler)}).Locate(t.Context(), "f", job); got.VM != "" || got.Elsewhere {
		t.Errorf("a fleet that is not there: %+v", got)
	}
}
