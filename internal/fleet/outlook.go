package fleet

import (
	"slices"
	"time"
)

// Outlook is the next moment at which the table decides otherwise though
// nothing else changes, and what it decides then: when the waiting ends, and
// what happens at that moment. The zero time: no moment does that.
func (s *Snapshot) Outlook(d Decision) (time.Time, Decision) {
	for _, moment := range s.moments() {
		later := *s
		later.Now = moment
		if next := Decide(&later); !sameAct(d, next) {
			return moment, next
		}
	}
	return time.Time{}, Decision{}
}

// moments are the deadlines that are still to come, the next one first.
func (s *Snapshot) moments() []time.Time {
	var list []time.Time
	add := func(from time.Time, after time.Duration) {
		if at := from.Add(after); !from.IsZero() && at.After(s.Now) {
			list = append(list, at)
		}
	}
	add(s.Deadline, 0)
	add(s.HardCap, 0)
	add(s.UnreachableSince, s.Policy.ReachDeadline)
	add(s.StoppedSince, ResultGrace)
	add(s.LeftoversSince, LeftoverGrace)
	slices.SortFunc(list, time.Time.Compare)
	return list
}

// sameAct says whether two decisions ask for the same. Stopping intake once
// more is the same before and after the cap: what the cap ends is a drain
// whose intake is stopped.
func sameAct(a, b Decision) bool {
	if a.Action == ActStopIntake && b.Action == ActStopIntake {
		return true
	}
	return a.Row == b.Row && a.Action == b.Action && a.Verdict == b.Verdict && a.Overran == b.Overran
}

// Then says for people what a decision does to an operation of a kind.
func (d Decision) Then(kind Kind, policy DrainPolicy) string {
	goesOn := "the " + string(kind) + " goes on"
	if kind == KindDrain {
		goesOn = "the drain is done"
	}
	switch {
	case d.Action == ActRestore:
		return "intake is restored and the operation fails"
	case d.Action == ActProceed:
		return d.Verdict.instead() + goesOn
	case d.Action == ActDrained && d.Row == 8 && d.CutByOthers:
		return "the job counts as cut by somebody else and " + goesOn
	case d.Action == ActDrained && d.Row == 8:
		return "the orphan watch takes the job over and " + goesOn
	case d.Action == ActDrained:
		return "what is left is reported and " + goesOn
	case d.Action == ActHold && d.Overran:
		return "it is alerted and waits on, up to " + policy.HardCap.String() + " in all"
	default:
		return ""
	}
}

// instead is what a verdict without a proof rests on.
func (v Verdict) instead() string {
	switch v {
	case VerdictOverrun:
		return "the running job is ended and "
	case VerdictUnreachable:
		return "without an answer from the host (unreachable: proceed) "
	default:
		return "without a proof (on_unproven: proceed) "
	}
}
