package metrics

import (
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const (
	codeOK    = "ok"
	codeError = "error"
)

// OperationMoved counts what a committed step changed (engine.Observer).
func (m *Metrics) OperationMoved(before, after *fleet.Operation) {
	if before == nil || after == nil {
		return
	}
	if !before.Drain.Overran && after.Drain.Overran {
		m.overruns.WithLabelValues(after.Fleet, string(after.Request.Policy.OnOverrun)).Inc()
	}
	if how := after.Drain.Disagreed; how != "" && how != before.Drain.Disagreed {
		m.disagreements.WithLabelValues(string(how)).Inc()
	}
	if before.Phase == after.Phase {
		return
	}
	if before.Phase == fleet.PhaseDeleting && after.Phase == fleet.PhaseDraining {
		m.disagreements.WithLabelValues(disagreedProofLost).Inc()
	}
	m.phaseDuration.WithLabelValues(string(before.Phase)).Observe(since(before.PhaseSince, after))
	if before.Phase == fleet.PhaseDraining && !after.Drain.StoppedAt.IsZero() {
		m.drainDuration.WithLabelValues(after.Fleet, outcome(after)).Observe(since(after.Drain.StoppedAt, after))
	}
	if after.Phase.Finished() {
		m.operations.WithLabelValues(after.Fleet, string(after.Kind), string(after.Phase)).Inc()
	}
}

// since is the time from a moment to when the operation moved, never negative:
// a clock may have been set back.
func since(from time.Time, after *fleet.Operation) float64 {
	if from.IsZero() {
		return 0
	}
	return max(0, after.UpdatedAt.Sub(from).Seconds())
}

func outcome(op *fleet.Operation) string {
	if op.Phase != fleet.PhaseDeleting && op.Phase != fleet.PhaseSucceeded {
		return outcomeRestored
	}
	switch op.Drain.Verdict {
	case fleet.VerdictOff, fleet.VerdictAbsent, fleet.VerdictNever:
		return outcomeGone
	case fleet.VerdictDirty, fleet.VerdictOverrun, fleet.VerdictUnreachable, fleet.VerdictUnproven, fleet.VerdictSkipped:
		return string(op.Drain.Verdict)
	default:
		return string(fleet.VerdictDrained)
	}
}

// JobsOrphaned counts orphans (engine.Observer).
func (m *Metrics) JobsOrphaned(fleetName string, result fleet.RecoveryResult, n int) {
	m.jobsOrphaned.WithLabelValues(fleetName, string(result)).Add(float64(n))
}

// JobsRetried counts jobs that were run again (engine.Observer).
func (m *Metrics) JobsRetried(fleetName string, cut bool, n int) {
	job := jobOrphan
	if cut {
		job = jobCut
	}
	m.jobsRetried.WithLabelValues(fleetName, job).Add(float64(n))
}

// JobsCut counts cut jobs (engine.Observer).
func (m *Metrics) JobsCut(fleetName string, n int) {
	m.jobsCut.WithLabelValues(fleetName).Add(float64(n))
}

// GitLabRequest counts one request: the path template, and the status or
// "error" if there was no answer.
func (m *Metrics) GitLabRequest(route, code string) {
	m.gitlab.WithLabelValues(route, code).Inc()
}

// ProviderRequest counts one call; err nil = ok.
func (m *Metrics) ProviderRequest(provider, call string, err error) {
	code := codeOK
	if err != nil {
		code = string(fleet.CodeOf(err))
	}
	m.provider.WithLabelValues(provider, call, code).Inc()
}

// Delivery counts one webhook delivery (hooks.Observer).
func (m *Metrics) Delivery(event, result string) { m.deliveries.WithLabelValues(event, result).Inc() }

// Reconciled records that the periodic look at everything succeeded.
func (m *Metrics) Reconciled(at time.Time) { m.reconciled.Set(float64(at.UnixMilli()) / 1000) }

// AccessRefused counts a caller that was refused.
func (m *Metrics) AccessRefused(reason string) { m.refusals.WithLabelValues(reason).Inc() }
