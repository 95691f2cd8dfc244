package metrics

import (
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// fleetState is the State of one fleet, by VM.
type fleetState struct {
	unfinished map[string]*fleet.Operation
	rows       map[string]*fleet.VM
}

func byFleet(state State) map[string]fleetState {
	all := map[string]fleetState{}
	of := func(name string) fleetState {
		if _, ok := all[name]; !ok {
			all[name] = fleetState{map[string]*fleet.Operation{}, map[string]*fleet.VM{}}
		}
		return all[name]
	}
	for i := range state.Unfinished {
		op := &state.Unfinished[i]
		of(op.Fleet).unfinished[op.VM] = op
	}
	for i := range state.VMs {
		vm := &state.VMs[i]
		of(vm.Fleet).rows[vm.VM] = vm
	}
	return all
}

// countStates counts the fleet's members; one that has no row yet serves.
func countStates(members []string, of fleetState) map[fleet.State]int {
	counts := map[fleet.State]int{}
	for _, word := range fleet.States() {
		counts[word] = 0
	}
	for _, name := range members {
		row := of.rows[name]
		if row == nil {
			row = &fleet.VM{}
		}
		counts[fleet.StateOf(*row, of.unfinished[name])]++
	}
	return counts
}

// ages are how long the unfinished operations of a fleet have been at it: of
// each sort, the longest.
type ages struct {
	drains, overran              int
	drain, overdue, restore, gap time.Duration
}

func agesOf(ops map[string]*fleet.Operation, now time.Time) *ages {
	a := &ages{}
	for _, op := range ops {
		if op.Drain.Overran {
			a.overran++
		}
		switch op.Phase {
		case fleet.PhaseDraining:
			a.drains++
			a.drain = longest(a.drain, op.Drain.StoppedAt, now)
			a.overdue = longest(a.overdue, op.Drain.Deadline, now)
		case fleet.PhaseRestoring:
			a.restore = longest(a.restore, op.PhaseSince, now)
		default:
		}
		if op.Kind == fleet.KindRecreate {
			a.gap = longest(a.gap, op.Delete.IntentAt, now)
		}
	}
	return a
}

// longest is the longer of d and the time since a moment; one that is not set,
// or lies ahead, counts for nothing.
func longest(d time.Duration, since, now time.Time) time.Duration {
	if since.IsZero() {
		return d
	}
	return max(d, now.Sub(since))
}
