package liars

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// meanJob is how long a job takes on average. Lengths are drawn so that what is
// left of one does not depend on how long it has run.
const meanJob = 5 * time.Minute

// BenchmarkGitLabCalls prints how many requests one replaced VM costs GitLab:
// 50 VMs, 3 at a time, a busy fleet whose jobs have 5 minutes left on average;
// preflight, links, proof, gate, orphan watch and deregistration included
// (design.md section 12). No time is measured.
func BenchmarkGitLabCalls(b *testing.B) {
	const fleetSize = 50
	for b.Loop() {
		calls, byRoute := replaceAll(b, fleetSize)
		b.ReportMetric(float64(calls)/fleetSize, "requests/VM")
		for route, n := range byRoute {
			b.Logf("%6.2f  %s", float64(n)/fleetSize, route)
		}
	}
}

// replaceAll replaces every VM of a busy fleet and yields the client's requests.
func replaceAll(t testing.TB, size int) (int, map[string]int) {
	t.Helper()
	var vms []string
	for i := range size {
		vms = append(vms, fmt.Sprintf("vm-%02d", i))
	}
	s := newScene(t, vms, nil)
	s.Spec.MaxUnavailable = 3
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a draw, no secret
	var ids []string
	for _, vm := range vms {
		ids = append(ids, s.Ask(fleet.KindRecreate, vm, func(r *fleet.Request) { r.Policy.OnOverrun = fleet.OverrunWait }))
	}
	for busy := true; busy; {
		for _, vm := range vms {
			if live := s.VM(vm); live != nil && live.Serving() && live.Busy == 0 {
				length := time.Duration(random.ExpFloat64() * float64(meanJob))
				s.speak(s.start(vm, simgitlab.JobSpec{}, max(length, time.Second)))
			}
		}
		s.Run(5 * time.Second)
		ops, _ := s.Store.Unfinished(t.Context())
		chores, _ := s.Store.UnfinishedChores(t.Context())
		busy = len(ops)+len(chores) > 0
	}
	for _, id := range ids {
		if op := s.Op(id); op.Phase != fleet.PhaseSucceeded {
			t.Fatalf("%s is %s: %s", id, op.Phase, op.ErrMessage)
		}
	}
	s.mustBeWhole()
	return s.wire.reached(), s.wire.counts
}
