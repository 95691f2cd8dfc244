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
	when   func(*Snapshot) bool
	then   func(*Snapshot) Decision
}

var table = []row{
	{1, otherIncarnation, conflict},
	{1, noGuest, nothingToDrain},
	{2, unreachable, atReachDeadline},
	{3, incomplete, unknownHost},
	{4, intakeOpen, stopIntake},
	{5, busy, waitForExit},
	{6, gitlabUnknown, unprovenAtCap},
	{7, resultOnItsWay, waitForResult},
	{8, gitlabActive, drainedWithWatch},
	{9, leftovers, dirtyAfterGrace},
	{10, always, drained},
}
