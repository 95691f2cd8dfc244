package gitlab_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// individual is a fleet with registration individual: the engine's own steps,
// the real client, and a GitLab that speaks HTTP, on a discrete clock.
type individual struct {
	*enginetest.World
	t    *testing.T
	lab  *simgitlab.Server
	own  map[string]simgitlab.RunnerSpec // by instance
	sent []string                        // what was not a GET
	last time.Time
}

func newIndividual(t *testing.T, vms ...string) *individual {
	t.Helper()
	s := &individual{World: enginetest.New(vms...), t: t, own: map[string]simgitlab.RunnerSpec{}}
	s.lab = simgitlab.New(simgitlab.Config{Now: s.Now})
	in, err := gitlab.New(gitlab.Config{URL: "http://gitlab.sim", Token: simgitlab.DefaultUserToken, Now: s.Now, Transport: s, Rate: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	entries := in.Entries(simgitlab.DefaultWriteToken)
	s.With = func(f *engine.Fleet) { f.GitLab, f.Entries = entries, entries }
	s.Registered = func(vm *enginetest.VM) {
		s.own[vm.ID] = s.lab.Register(enginetest.Fleet + "/" + vm.Name)
		vm.Entry = s.own[vm.ID].ID
	}
	s.OwnEntries()
	s.Points.At = func(string) { s.poll() }
	s.poll()
	s.Advance(time.Minute)
	return s
}

// RoundTrip implements http.RoundTripper: no socket, no waiting.
func (s *individual) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		s.sent = append(s.sent, req.Method+" "+req.URL.Path)
	}
	rec := httptest.NewRecorder()
	s.lab.ServeHTTP(rec, req)
	resp := rec.Result()
	resp.Request = req
	return resp, nil
}

// poll lets every runner ask for a job, once a second.
func (s *individual) poll() {
	if s.Now().Sub(s.last) < time.Second {
		return
	}
	s.last = s.Now()
	for _, vm := range s.VMs {
		switch {
		case !vm.Gone.IsZero():
			s.lab.VMGone(vm.SystemID)
		case vm.Unit.MainPID != 0:
			body := fmt.Appendf(nil, `{"token":%q,"system_id":%q}`, s.own[vm.ID].Token, vm.SystemID)
			s.lab.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/api/v4/jobs/request", bytes.NewReader(body)))
		}
	}
}

// From the ask to the end, through the real client: the old entry is removed
// once, the new one lives, and nothing else is sent that is not a GET.
func TestAVMsOwnEntryGoesWithItEndToEnd(t *testing.T) {
	s := newIndividual(t, "a", "b")
	old := s.VM("a")
	id := s.Ask(fleet.KindRecreate, "a")
	s.Run(time.Hour)
	op, vm := s.Op(id), s.VM("a")
	if op.Phase != fleet.PhaseSucceeded || op.Old.Entry != old.Entry || op.Create.New.Entry != vm.Entry {
		t.Fatalf("%s: %s, %+v, %+v\n%s", op.Phase, op.ErrMessage, op.Old, op.Create.New, s.Story())
	}
	var left []int64
	for _, e := range s.lab.Entries() {
		left = append(left, e.ID)
	}
	ledger := s.lab.Ledger()
	if !slices.Equal(ledger.Removed, []int64{old.Entry}) || len(ledger.Damage) != 0 || !slices.Equal(left, []int64{s.VM("b").Entry, vm.Entry}) {
		t.Errorf("removed %v, left %v, damage %v\n%s", ledger.Removed, left, ledger.Damage, s.Story())
	}
	if want := []string{fmt.Sprintf("DELETE /api/v4/runners/%d", old.Entry)}; !slices.Equal(s.sent, want) {
		t.Errorf("sent %v, want %v", s.sent, want)
	}
	if !strings.Contains(s.Story(), fmt.Sprintf("runner entry %d removed; the new VM's entry %d lives", old.Entry, vm.Entry)) {
		t.Error(s.Story())
	}
}

// What a person did to the entry meanwhile leaves it, in words.
func TestAnEntryThatAPersonRenamedMeanwhileStaysEndToEnd(t *testing.T) {
	s := newIndividual(t, "a")
	old := s.VM("a")
	s.Fences["delete"] = func() { s.lab.Rename(old.Entry, "kept for the audit") }
	s.Ask(fleet.KindDelete, "a")
	s.Run(time.Hour)
	if left := s.lab.Entries(); len(left) != 1 || len(s.sent) != 0 || !strings.Contains(s.Story(), `its description is "kept for the audit", and was "f/a"`) {
		t.Errorf("left %v, sent %v\n%s", left, s.sent, s.Story())
	}
}
