package fleet

import (
	"fmt"
	"strings"
	"time"
)

func (s *Snapshot) pastCap() bool {
	return !s.Deadline.IsZero() && !s.Now.Before(s.Deadline)
}

func (s *Snapshot) pastHardCap() bool {
	return !s.HardCap.IsZero() && !s.Now.Before(s.HardCap)
}

// Row 1.

// foreign is the first piece of evidence that is about somebody else: an
// error, whatever it says (design.md section 2).
func (s *Snapshot) foreign() *Subject {
	switch {
	case s.Provider != nil && !s.Expected.is(&s.Provider.Subject):
		return &s.Provider.Subject
	case s.Host != nil && !s.Expected.is(&s.Host.Subject):
		return &s.Host.Subject
	case s.GitLab != nil && !s.NoGitLab && !s.Expected.is(&s.GitLab.Subject):
		return &s.GitLab.Subject
	default:
		return nil
	}
}

func otherIncarnation(s *Snapshot) bool { return s.foreign() != nil }

func conflict(s *Snapshot) Decision {
	return Decision{Action: ActConflict, Reason: s.Expected.Check(*s.foreign()).Error()}
}

// noGuest asks for a host that did not answer too: where it does, the provider
// is wrong or late, and a process that runs is not drained by its word.
func noGuest(s *Snapshot) bool {
	return s.Host == nil && s.Provider != nil &&
		(s.Provider.Presence == PresenceAbsent || s.Provider.Presence == PresenceOff)
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
	var reason string
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

// gitlabBusy is what GitLab proves now. A reading from before the stop was
// seen proves nothing: GitLab must be asked after the process is gone.
func (s *Snapshot) gitlabBusy() Busy {
	if s.GitLab != nil && !s.StoppedSince.IsZero() && s.GitLab.TakenAt.Before(s.StoppedSince) {
		return BusyUnknown
	}
	return s.GitLab.Busy()
}

func gitlabUnknown(s *Snapshot) bool { return !s.NoGitLab && s.gitlabBusy() == BusyUnknown }

func unprovenAtCap(s *Snapshot) Decision {
	reason := "the runner process is gone; GitLab's answer is unknown"
	if s.GitLab != nil && s.GitLab.Unknown != "" {
		reason += ": " + s.GitLab.Unknown
	}
	return unprovenOrWait(s, reason, 5*time.Second)
}

// unprovenOrWait waits for evidence until the drain's time is up: the cap, or
// the hard cap where the policy waits on. Otherwise one lost answer after the
// cap would end a drain that was told to wait.
func unprovenOrWait(s *Snapshot, reason string, wait time.Duration) Decision {
	timeUp := s.pastCap()
	if s.Policy.OnOverrun == OverrunWait {
		timeUp = s.pastHardCap()
	}
	switch {
	case !timeUp:
		return Decision{Action: ActWait, Wait: wait, Reason: reason}
	case s.Policy.OnUnproven == UnprovenProceed:
		return Decision{Action: ActProceed, Verdict: VerdictUnproven, Reason: reason}
	default:
		return Decision{Action: ActRestore, Reason: reason + "; its time is up"}
	}
}

// Row 7.

func resultOnItsWay(s *Snapshot) bool {
	return gitlabActive(s) && (s.StoppedSince.IsZero() || s.Now.Sub(s.StoppedSince) < ResultGrace)
}

func waitForResult(*Snapshot) Decision {
	return Decision{Action: ActWait, Wait: time.Second, Reason: "the runner process is gone; its last result is on its way to GitLab"}
}

// Row 8.

func gitlabActive(s *Snapshot) bool { return !s.NoGitLab && s.gitlabBusy() == BusyActive }

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
