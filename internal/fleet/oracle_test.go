package fleet

import "fmt"

// oracle is design.md table 4.2, said over words and not over readings.
func oracle(w *worldWords) Decision {
	h := w.host
	switch {
	case w.hasForeignEvidence():
		return Decision{Row: 1, Action: ActConflict}
	case !h.answered && w.provider == "off":
		return Decision{Row: 1, Action: ActDrained, Verdict: VerdictOff, CutByOthers: w.gitlabListsJobs()}
	case !h.answered && w.provider == "absent":
		return Decision{Row: 1, Action: ActDrained, Verdict: VerdictAbsent, CutByOthers: w.gitlabListsJobs()}
	case !h.answered && w.silence != "long":
		return Decision{Row: 2, Action: ActWait}
	case !h.answered && w.unreachable == UnreachableFail:
		return Decision{Row: 2, Action: ActRestore}
	case !h.answered:
		return Decision{Row: 2, Action: ActProceed, Verdict: VerdictUnreachable}
	case w.hostPartial():
		return w.oracleUnproven(3)
	case w.intakeMayBeOpen():
		return w.oracleStop()
	case !w.processGone():
		return w.oracleOverrun(5, ActHold)
	case !w.noGitLab && w.gitlabSays() == "unknown":
		return w.oracleUnproven(6)
	case !w.noGitLab && w.gitlabSays() == "active" && w.stopped != "long":
		return Decision{Row: 7, Action: ActWait}
	case !w.noGitLab && w.gitlabSays() == "active":
		return Decision{Row: 8, Action: ActDrained, Verdict: VerdictDrained, CutByOthers: h.result != "success"}
	case h.containers == "some" && w.left != "long":
		return Decision{Row: 9, Action: ActWait}
	case h.containers == "some":
		return Decision{Row: 9, Action: ActDrained, Verdict: VerdictDirty}
	default:
		return Decision{Row: 10, Action: ActDrained, Verdict: VerdictDrained}
	}
}

func (w *worldWords) hasForeignEvidence() bool {
	return w.provider == "another running" || w.provider == "another absent" ||
		w.host.other || (w.gitlab == "somebody else's" && !w.noGitLab)
}

func (w *worldWords) gitlabListsJobs() bool {
	return w.gitlab == "partial" || w.gitlab == "running" || w.gitlab == "contradiction"
}

func (w *worldWords) hostPartial() bool {
	return w.host.unit == "" || w.host.boot == "missing" || (w.processGone() && w.host.containers == "unknown")
}

func (w *worldWords) intakeMayBeOpen() bool {
	onItsWayDown := w.host.unit == "deactivating" || w.host.unit == "inactive" || w.host.unit == "failed"
	return w.cap == "not begun" || w.host.boot == "changed" || !w.host.dropIn || !onItsWayDown
}

func (w *worldWords) processGone() bool {
	return (w.host.unit == "inactive" || w.host.unit == "failed") && !w.host.pid
}

func (w *worldWords) gitlabSays() string {
	switch w.gitlab {
	case "idle":
		return "idle"
	case "stale idle":
		if w.stopped == "no" {
			return "idle"
		}
		return "unknown"
	case "running", "contradiction", "active, no job":
		return "active"
	default:
		return "unknown"
	}
}

func (w *worldWords) capPassed() bool { return w.cap == "at the cap" || w.cap == "at the hard cap" }

// timeIsUp says whether the policy allows no more waiting.
func (w *worldWords) timeIsUp() bool {
	if w.overrun == OverrunWait {
		return w.cap == "at the hard cap"
	}
	return w.capPassed()
}

func (w *worldWords) oracleUnproven(row int) Decision {
	switch {
	case !w.timeIsUp():
		return Decision{Row: row, Action: ActWait}
	case w.unproven == UnprovenAbort:
		return Decision{Row: row, Action: ActRestore}
	default:
		return Decision{Row: row, Action: ActProceed, Verdict: VerdictUnproven}
	}
}

func (w *worldWords) oracleStop() Decision {
	if w.capPassed() && w.again {
		return w.oracleOverrun(4, ActStopIntake)
	}
	return Decision{Row: 4, Action: ActStopIntake, Overran: w.capPassed()}
}

func (w *worldWords) oracleOverrun(row int, waiting Action) Decision {
	switch {
	case !w.capPassed():
		return Decision{Row: row, Action: waiting}
	case w.overrun == OverrunAbort:
		return Decision{Row: row, Action: ActRestore, Overran: true}
	case w.overrun == OverrunWait && w.cap == "at the cap":
		return Decision{Row: row, Action: waiting, Overran: true}
	default:
		return Decision{Row: row, Action: ActProceed, Verdict: VerdictOverrun, Overran: true}
	}
}

// broken names the promise that a decision breaks, whatever the table says.
func broken(w *worldWords, d Decision) string {
	proof := d.Action == ActDrained
	running := w.host.answered && (w.host.pid || (w.host.unit != "inactive" && w.host.unit != "failed"))
	proven := w.host.answered && w.host.dropIn && w.host.boot == "same" && w.cap != "not begun" &&
		(w.noGitLab || w.gitlabSays() != "unknown")
	noGuest := !w.host.answered && (w.provider == "off" || w.provider == "absent")
	switch {
	case d.Reason == "":
		return "a decision says why"
	case (d.Action == ActConflict) != w.hasForeignEvidence():
		return "evidence about somebody else is a conflict, and nothing else is"
	case proof && running:
		return "nothing ends as drained while the process runs"
	case proof && !noGuest && !proven:
		return "a drain is proven by our drop-in, this boot and GitLab asked after the exit"
	case proof && d.Verdict.Waived():
		return "a proof is no waiver"
	case d.Action == ActProceed && !d.Verdict.Waived():
		return "to proceed without a proof needs a waiver"
	case !proof && d.Action != ActProceed && d.Verdict != "":
		return "only an end has a verdict"
	case proof && w.host.containers == "some" && d.Row > 8 && d.Verdict != VerdictDirty:
		return "leftovers are reported"
	default:
		return brokenPolicy(w, d)
	}
}

func brokenPolicy(w *worldWords, d Decision) string {
	inside := !w.capPassed()
	switch {
	case d.Action == ActProceed && inside && d.Verdict != VerdictUnreachable:
		return "unknown and busy destroy nothing inside the cap"
	case d.Verdict == VerdictOverrun && (w.overrun == OverrunAbort || !w.timeIsUp()):
		return "an overrun proceeds only if the policy says so"
	case d.Verdict == VerdictUnreachable && (w.unreachable != UnreachableProceed || w.silence != "long"):
		return "an unreachable host is given up only if the policy says so"
	case d.Verdict == VerdictUnproven && (w.unproven != UnprovenProceed || !w.timeIsUp()):
		return "the unproven proceeds only if the policy says so"
	case d.Action == ActRestore && inside && (w.unreachable != UnreachableFail || w.silence != "long" || w.host.answered):
		return "inside the cap only a host long out of reach is given back"
	case d.Action == ActRestore && d.Row != 2 && w.overrun != OverrunAbort && w.unproven != UnprovenAbort:
		return "intake is given back only if a policy says abort"
	case d.Overran && inside:
		return "nothing overruns inside the cap"
	case d.Action == ActWait && d.Wait <= 0:
		return "a wait has an end"
	default:
		return ""
	}
}

func sameDecision(want, got Decision) bool {
	want.Reason, want.Wait = got.Reason, got.Wait
	return want == got
}

func (d Decision) short() string {
	return fmt.Sprintf("row %d %s %s overran=%t cut=%t (%s)", d.Row, d.Action, d.Verdict, d.Overran, d.CutByOthers, d.Reason)
}
