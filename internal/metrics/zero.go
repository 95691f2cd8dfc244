package metrics

import (
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The outcomes of a drain: one word for each way out of it.
const (
	outcomeGone     = "gone"     // the instance was off or absent
	outcomeRestored = "restored" // intake was given back, or the operation ended otherwise
)

// What a retried job was.
const (
	jobOrphan = "orphan"
	jobCut    = "cut"
)

// disagreedProofLost: what was proven did not hold at the last look before the
// delete. The other kinds are fleet.Disagreements.
const disagreedProofLost = "proof_lost"

func outcomes() []string {
	return []string{
		string(fleet.VerdictDrained), string(fleet.VerdictDirty), string(fleet.VerdictOverrun),
		string(fleet.VerdictUnreachable), string(fleet.VerdictUnproven), string(fleet.VerdictSkipped),
		outcomeGone, outcomeRestored,
	}
}

// gitlabCodes are what GitLab answers with or is seen not to: the codes of
// facts/gitlab.md section 1.8, "error" for no answer, "paused" where Sluice
// waits out a rate limit.
func gitlabCodes() []string {
	return []string{"200", "201", "204", "401", "403", "404", "429", "500", "501", "502", "503", codeError, "paused"}
}

// providerCodes are the failures that the provider's contract names
// (engine.Machines), and ok.
func providerCodes() []string {
	codes := []string{codeOK}
	for _, code := range []fleet.Code{
		fleet.CodeStockout, fleet.CodeQuota, fleet.CodeUnavailable, fleet.CodeRateLimited, fleet.CodeConflict,
		fleet.CodeImageMissing, fleet.CodeInvalid, fleet.CodeForbidden,
	} {
		codes = append(codes, string(code))
	}
	return codes
}

// calls are the calls to a provider that are counted (engine.Machines).
func calls() []string {
	return []string{"list", "describe", "prepare", "check", "create", "delete", "remains"}
}

// zero brings every series into being.
func (m *Metrics) zero(o Options) {
	for name := range o.Fleets {
		m.jobsCut.WithLabelValues(name)
		for _, result := range fleet.RecoveryResults() {
			if result != fleet.RecoveryCanceled { // of cut jobs
				m.jobsOrphaned.WithLabelValues(name, string(result))
			}
		}
		for _, job := range []string{jobOrphan, jobCut} {
			m.jobsRetried.WithLabelValues(name, job)
		}
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
	m.disagreements.WithLabelValues(disagreedProofLost)
	for _, kind := range fleet.Disagreements() {
		m.disagreements.WithLabelValues(string(kind))
	}
	for _, route := range o.Routes {
		for _, code := range gitlabCodes() {
			m.gitlab.WithLabelValues(route, code)
		}
	}
	for _, reason := range o.Refusals {
		m.refusals.WithLabelValues(reason)
	}
	for _, event := range o.Events {
		for _, result := range o.Results {
			m.deliveries.WithLabelValues(event, result)
		}
	}
	for _, provider := range o.Providers {
		for _, call := range calls() {
			for _, code := range providerCodes() {
				m.provider.WithLabelValues(provider, call, code)
			}
		}
	}
}
