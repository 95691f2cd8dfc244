package metrics

import (
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The outcomes of a drain: one word for each way out of it.
const (
	outcomeGone     = "gone"     // the instance was off or absent
	outcomeRestored = "restored" // intake was given back, or the operation ended otherwise
)

func outcomes() []string {
	return []string{
		string(fleet.VerdictDrained), string(fleet.VerdictDirty), string(fleet.VerdictOverrun),
		string(fleet.VerdictUnreachable), string(fleet.VerdictUnproven), outcomeGone, outcomeRestored,
	}
}

// calls are the calls to a provider that are counted (engine.Machines).
func calls() []string {
	return []string{"list", "describe", "prepare", "check", "create", "delete", "remains"}
}

// zero brings every series into being.
func (m *Metrics) zero(o Options) {
	for name := range o.Fleets {
		m.jobsCut.WithLabelValues(name)
		m.jobsOrphaned.WithLabelValues(name)
		for _, outcome := range outcomes() {
			m.drainDuration.WithLabelValues(name, outcome)
		}
		for _, policy := range []fleet.Overrun{fleet.OverrunProceed, fleet.OverrunWait, fleet.OverrunAbort} {
			m.overruns.WithLabelValues(name, string(policy))
		}
		for _, kind := range fleet.Kinds() {
			for _, phase := range fleet.Phases() {
				if phase.Finished() {
					m.operations.WithLabelValues(name, string(kind), string(phase))
				}
			}
		}
	}
	for _, phase := range fleet.Phases() {
		if !phase.Finished() {
			m.phaseDuration.WithLabelValues(string(phase))
		}
	}
	for _, route := range o.Routes {
		m.gitlab.WithLabelValues(route, "200")
		m.gitlab.WithLabelValues(route, codeError)
	}
	for _, reason := range o.Refusals {
		m.refusals.WithLabelValues(reason)
	}
	for _, provider := range o.Providers {
		for _, call := range calls() {
			m.provider.WithLabelValues(provider, call, codeOK)
			m.provider.WithLabelValues(provider, call, string(fleet.CodeUnavailable))
		}
	}
}
