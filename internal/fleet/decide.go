package fleet

import (
	"fmt"
	"strings"
	"time"
)

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
func Decide(s *Snapshot) Decision {
	for _, row := range table {
		if row.when(s) {
			d := row.then(s)
			d.Row = row.number
			return d
		}
	}
	// Unreachable: row 10 matches whatever is left, and the test walks the
	// whole cross product. Unknown is not idle.
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

func (s *Snapshot) pastCap() bool {
	return !s.Deadline.IsZero() && !s.Now.Before(s.Deadline)
}

func (s *Snapshot) pastHardCap() bool {
	return !s.HardCap.IsZero() && !s.Now.Before(s.HardCap)
}

// Row 1.

func otherIncarnation(s *Snapshot) bool {
	if s.Provider != nil && s.Provider.Presence != PresenceAbsent && s.Expected.Check(s.Provider.Subject) != nil {
		return true
	}
	return s.Host != nil && s.Expected.Check(s.Host.Subject) != nil
}

func conflict(s *Snapshot) Decision {
	err := error(nil)
	if s.Provider != nil {
		err = s.Expected.Check(s.Provider.Subject)
	}
	if err == nil && s.Host != nil {
		err = s.Expected.Check(s.Host.Subject)
	}
	return Decision{Action: ActConflict, Reason: err.Error()}
}

func noGuest(s *Snapshot) bool {
	return s.Provider != nil && (s.Provider.Presence == PresenceAbsent || s.Provider.Presence == PresenceOff)
}

func nothingToDrain(s *Snapshot) Decision {
	verdict := VerdictAbsent
	if s.Provider.Presence == PresenceOff {
		verdict = VerdictOff
	}
	return Decision{
		Action: ActDrained, Verdict: verdict, CutByOthers: len(s.GitLab.Executing()) > 0,
		Reason: fmt.Sprintf("the provider says the instance is %s: nothing to drain", s.Provider.Presence),
	}
}

// Row 2.

func unreachable(s *Snapshot) bool { return s.Host == nil }

func atReachDeadline(s *Snapshot) Decision {
	if s.UnreachableSince.IsZero() || s.Now.Sub(s.UnreachableSince) < s.Policy.ReachDeadline {
		return Decision{Action: ActWait, Wait: 5 * time.Second, Reason: "the host cannot be reached: " + s.HostErr}
	}
	reason := fmt.Sprintf("the host has been out of reach for %s: %s", s.Policy.ReachDeadline, s.HostErr)
	if s.Policy.Unreachable == UnreachableProceed {
		return Decision{Action: ActProceed, Verdict: VerdictUnreachable, Reason: reason}
	}
	return Decision{Action: ActRestore, Reason: reason}
}

// Row 3.

func incomplete(s *Snapshot) bool { return !s.Host.Complete() }

func unknownHost(s *Snapshot) Decision {
	reason := "the host's answer is incomplete"
	if s.Host.Problem != "" {
		reason += ": " + s.Host.Problem
	}
	return unprovenOrWait(s, reason, time.Second)
}

// Row 4.

func intakeOpen(s *Snapshot) bool {
	return s.Deadline.IsZero() || differ(s.Expected.BootID, s.Host.Subject.BootID) ||
		!s.Host.DropIn.Effective || !settled(s.Host.Unit)
}

// settled says whether the unit is on its way down or down. Anything else,
// activating, reloading and words of later systemds included, is open.
func settled(u UnitState) bool {
	switch u.ActiveState {
	case "deactivating", "inactive", "failed":
		return true
	default:
		return false
	}
}

func stopIntake(s *Snapshot) Decision {
	if s.pastCap() && s.StoppedPastCap {
		d := overrun(s, "intake does not stay stopped")
		if d.Action == ActHold { // a policy that waits keeps trying to stop it
			d.Action = ActStopIntake
		}
		return d
	}
	reason := "intake is open"
	switch {
	case s.Deadline.IsZero():
		reason = "intake has not been stopped yet"
	case differ(s.Expected.BootID, s.Host.Subject.BootID):
		reason = "the host was rebooted: intake must be stopped again"
	case !s.Host.DropIn.Effective:
		reason = "the drain drop-in is not in effect: intake must be stopped again"
	default:
		reason = fmt.Sprintf("the unit is %s/%s: intake must be stopped again", s.Host.Unit.ActiveState, s.Host.Unit.SubState)
	}
	return Decision{Action: ActStopIntake, Reason: reason, Overran: s.pastCap()}
}

// Row 5.

func busy(s *Snapshot) bool { return !s.Host.Unit.Stopped() }

func waitForExit(s *Snapshot) Decision {
	reason := "the runner process still runs: " + s.waitsFor()
	if s.pastCap() {
		return overrun(s, reason)
	}
	return Decision{Action: ActHold, Reason: reason}
}

func overrun(s *Snapshot, reason string) Decision {
	reason = fmt.Sprintf("the cap of %s has passed; %s", s.Policy.Cap, reason)
	switch {
	case s.Policy.OnOverrun == OverrunAbort:
		return Decision{Action: ActRestore, Reason: reason, Overran: true}
	case s.Policy.OnOverrun == OverrunWait && !s.pastHardCap():
		return Decision{Action: ActHold, Reason: reason, Overran: true}
	default:
		return Decision{Action: ActProceed, Verdict: VerdictOverrun, Reason: reason, Overran: true}
	}
}

// waitsFor names the jobs that the drain waits for, as far as known.
func (s *Snapshot) waitsFor() string {
	var names []string
	for _, job := range s.GitLab.Executing() {
		names = append(names, job.String())
	}
	for _, c := range s.Host.Containers {
		if len(names) == 0 && c.Name != "" {
			names = append(names, "container "+c.Name)
		}
	}
	if len(names) == 0 {
		return "no job is known yet"
	}
	return strings.Join(names, ", ")
}

// Row 6.

func gitlabUnknown(s *Snapshot) bool { return !s.NoGitLab && s.GitLab.Busy() == BusyUnknown }

func unprovenAtCap(s *Snapshot) Decision {
	reason := "the runner process is gone; GitLab's answer is unknown"
	if s.GitLab != nil && s.GitLab.Unknown != "" {
		reason += ": " + s.GitLab.Unknown
	}
	return unprovenOrWait(s, reason, 5*time.Second)
}

func unprovenOrWait(s *Snapshot, reason string, wait time.Duration) Decision {
	switch {
	case !s.pastCap():
		return Decision{Action: ActWait, Wait: wait, Reason: reason}
	case s.Policy.OnUnproven == UnprovenProceed:
		return Decision{Action: ActProceed, Verdict: VerdictUnproven, Reason: reason}
	default:
		return Decision{Action: ActRestore, Reason: reason + "; the cap has passed"}
	}
}

// Row 7.

func resultOnItsWay(s *Snapshot) bool {
	return gitlabActive(s) && (s.StoppedSince.IsZero() || s.Now.Sub(s.StoppedSince) < ResultGrace)
}

func waitForResult(s *Snapshot) Decision {
	return Decision{Action: ActWait, Wait: time.Second, Reason: "the runner process is gone; its last result is on its way to GitLab"}
}

// Row 8.

func gitlabActive(s *Snapshot) bool { return !s.NoGitLab && s.GitLab.Busy() == BusyActive }

func drainedWithWatch(s *Snapshot) Decision {
	d := Decision{Action: ActDrained, Verdict: VerdictDrained}
	if s.Host.Unit.Result == "success" {
		d.Reason = "the runner process ended well; GitLab still shows " + s.waitsFor() + ", which the orphan watch takes over"
		return d
	}
	d.CutByOthers = true
	d.Reason = fmt.Sprintf("the runner process ended with %s; %s was cut by somebody else", s.Host.Unit.Result, s.waitsFor())
	return d
}

// Row 9.

func leftovers(s *Snapshot) bool { return len(s.Host.Containers) > 0 }

func dirtyAfterGrace(s *Snapshot) Decision {
	names := make([]string, 0, len(s.Host.Containers))
	for _, c := range s.Host.Containers {
		names = append(names, c.Name)
	}
	reason := "the runner process is gone, containers are left: " + strings.Join(names, ", ")
	if s.LeftoversSince.IsZero() || s.Now.Sub(s.LeftoversSince) < LeftoverGrace {
		return Decision{Action: ActWait, Wait: 2 * time.Second, Reason: reason}
	}
	return Decision{Action: ActDrained, Verdict: VerdictDirty, Reason: reason}
}

// Row 10.

func always(*Snapshot) bool { return true }

func drained(s *Snapshot) Decision {
	reason := "the runner process is gone with the drop-in in effect, and GitLab agrees"
	if s.NoGitLab {
		reason = "the runner process is gone with the drop-in in effect (GitLab was not asked: no token)"
	}
	if s.Host.Unit.Result != "success" {
		reason += "; systemd's result is " + s.Host.Unit.Result
	}
	return Decision{Action: ActDrained, Verdict: VerdictDrained, Reason: reason}
}
