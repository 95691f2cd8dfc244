package fleet

import "time"

// Snapshot is everything that a drain's decision rests on. A nil reading
// means: asked and not answered (host), or not asked (provider, GitLab).
type Snapshot struct {
	Now      time.Time
	Expected Subject // as preflight found it
	Policy   DrainPolicy
	Deadline time.Time // when the cap passes; zero = intake not stopped yet
	HardCap  time.Time // when OverrunWait ends; zero as Deadline

	Host     *HostReading
	HostErr  string // why Host is nil, for people
	Provider *ProviderReading
	GitLab   *GitLabReading
	NoGitLab bool // no GitLab token: host evidence alone decides

	UnreachableSince time.Time // our clock; zero = reached at the last look
	StoppedSince     time.Time // our clock, when the stop was first seen; zero = not
	LeftoversSince   time.Time // our clock, when leftovers were first seen; zero = none
	StoppedPastCap   bool      // intake was stopped again after the cap already
}

// Action is what a decision asks for.
type Action string

// The actions. ActWait looks again later; ActHold may wait on the host for
// the process to end; ActDrained and ActProceed end the drain, the latter
// under a waiver; ActRestore gives intake back and fails the operation.
const (
	ActWait       Action = "wait"
	ActHold       Action = "hold"
	ActStopIntake Action = "stop_intake"
	ActDrained    Action = "drained"
	ActProceed    Action = "proceed"
	ActRestore    Action = "restore"
	ActConflict   Action = "conflict"
)

// Verdict is how a drain ended. The last four need a waiver: they are not
// proofs, but somebody's policy.
type Verdict string

// The verdicts.
const (
	VerdictDrained     Verdict = "drained"
	VerdictDirty       Verdict = "dirty" // drained, containers left
	VerdictOff         Verdict = "off"
	VerdictAbsent      Verdict = "absent"
	VerdictNever       Verdict = "never_joined" // no runner in this boot, no manager
	VerdictOverrun     Verdict = "overrun"
	VerdictUnreachable Verdict = "unreachable"
	VerdictUnproven    Verdict = "unproven"
	VerdictSkipped     Verdict = "skipped"
)

// Waived says whether the verdict stands on a waiver and not on a proof.
func (v Verdict) Waived() bool {
	switch v {
	case VerdictOverrun, VerdictUnreachable, VerdictUnproven, VerdictSkipped:
		return true
	default:
		return false
	}
}

// Decision is what the table says, and which row said it.
type Decision struct {
	Row         int // of design.md table 4.2
	Action      Action
	Verdict     Verdict // set with ActDrained and ActProceed
	Reason      string
	Wait        time.Duration // until the next look
	Overran     bool          // the cap has passed with a job running
	CutByOthers bool          // jobs left executing were ended by somebody else
}

// Decide is table 4.2 of design.md: the first row that matches wins.
func Decide(s *Snapshot) Decision { return decideBy(table, s) }

func decideBy(rows []row, s *Snapshot) Decision {
	for _, row := range rows {
		if row.when(s) {
			d := row.then(s)
			d.Row = row.number
			return d
		}
	}
	// Out of reach: row 10 matches whatever is left. Unknown is not idle.
	return Decision{Action: ActWait, Reason: "no row of the table matches", Wait: time.Second}
}

type row struct {
	number int
	says   string // when the row matches, and what it makes of that
	when   func(*Snapshot) bool
	then   func(*Snapshot) Decision
}

var table = []row{
	{1, "a reading is about another machine or incarnation: conflict, nothing of it is touched", otherIncarnation, conflict},
	{1, "the provider says that the instance is absent or off, and no host answers: nothing to drain", noGuest, nothingToDrain},
	{2, "the host cannot be reached: wait; at the reach deadline, policy unreachable", unreachable, atReachDeadline},
	{3, "the host's answer is empty or partial: unknown, so wait; when the time is up, policy on_unproven", incomplete, unknownHost},
	{4, "the runner takes new jobs, or may take some again: stop its intake", intakeOpen, stopIntake},
	{5, "the runner process still runs: busy, so wait; at the cap, policy on_overrun", busy, waitForExit},
	{6, "the process is gone and GitLab's word is unknown: wait; when the time is up, policy on_unproven", gitlabUnknown, unprovenAtCap},
	{7, "the process is gone and GitLab still shows a job, for less than 10 s: wait, its result is on its way", resultOnItsWay, waitForResult},
	{8, "the process is gone and GitLab still shows a job, for longer: drained, and the job is accounted for", gitlabActive, drainedWithWatch},
	{9, "the process is gone and containers are left: wait 30 s, then drained, and they are reported", leftovers, dirtyAfterGrace},
	{10, "the process is gone with the drop-in in effect, and GitLab agrees: drained", always, drained},
}

// Rule is the row of the table that made the decision, in words; "" where none
// did.
func (d Decision) Rule() string {
	for i, r := range table {
		if r.number == d.Row && (i > 0 || d.Action == ActConflict) {
			return r.says
		}
	}
	return ""
}
