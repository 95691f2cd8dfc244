package fleet

import "time"

// RecoveryPolicy says what a fleet wants done about jobs that no runner will
// finish (design.md section 6).
type RecoveryPolicy struct {
	Orphans bool // cancel orphans and run them again; end cut jobs
	CutJobs bool // run cut jobs again, too: they had begun
	Asked   bool // Orphans is no default: somebody relies on it
}

// deliveryGivenUp is how long after a job began its runner may at the earliest
// have given up delivering the result: ten tries, one second doubling
// (facts/runner-host.md: 17 minutes; the waits between ten tries alone are 8).
const deliveryGivenUp = 8 * time.Minute

// RunnerFate is what has become of the runner that a job was assigned to.
type RunnerFate int

// The fates.
const (
	RunnerStays  RunnerFate = iota // whatever runs on its VM goes on
	RunnerInWork                   // its VM's operation has not ended
	RunnerGone                     // whatever GitLab shows on it was cut
)

// answerTakes is the longest that the answer with a job is believed to be on
// its way (facts/runner-host.md measured up to 4 s). A job that was assigned
// earlier before the stop may have been a runner's that has died since.
const answerTakes = 20 * time.Second

// RequestOutlives is for how long GitLab may go on answering the request of a
// runner that has ended. A job that it assigned later was another runner's, that
// somebody has started.
const RequestOutlives = 10 * time.Second

// Suspect is a job that GitLab shows executing on a system_id whose intake was
// stopped, began in the watched window, and all that is known of it.
type Suspect struct {
	Job           Job
	TraceEmpty    bool
	ContainerSeen bool       // a container of it was seen on the VM
	Recorded      bool       // the operation has recorded it as cut
	Runner        RunnerFate // of the runner that it was assigned to
	Another       bool       // it began when that one had surely ended: another one's
	Exited        bool       // that runner's process was seen gone
	CleanExit     bool       // that runner's process ended by itself, and well
	StopAt        time.Time  // when its intake was ordered to stop; GitLab's clock
	ExitAt        time.Time  // when it ended; GitLab's clock
	Unsure        bool       // GitLab was unknown between stop and exit
	Reopened      bool       // intake on its system_id was open again, or may have been
}

// SuspectIs is what a suspect turns out to be.
type SuspectIs int

// What it may be.
const (
	SuspectUndecided SuspectIs = iota // a later look tells
	SuspectOrphan                     // GitLab assigned it and the VM never received it
	SuspectCut                        // it began and its runner is gone
	SuspectGoesOn                     // its runner works on it
)

// Is judges the suspect: an orphan has an empty trace and no container of it
// was seen; any other was cut if its runner is gone.
func (s Suspect) Is() SuspectIs {
	switch {
	case s.TraceEmpty && !s.ContainerSeen && !s.Recorded && !s.Another:
		return SuspectOrphan
	case s.Runner == RunnerInWork:
		return SuspectUndecided
	case s.Runner == RunnerStays:
		return SuspectGoesOn
	default:
		return SuspectCut
	}
}

// Doubt says why a suspect must be left to a person; "" = it may be acted on. A
// runner that ends by itself, and soon, has delivered every result of a job
// that it received: what is left executing then never reached it.
func (s Suspect) Doubt() string {
	switch {
	case s.Reopened:
		return "intake was opened again since"
	case s.Unsure:
		return "GitLab was out of reach between the stop and the end of the runner"
	case !s.ExitAt.Before(s.Job.StartedAt.Add(deliveryGivenUp)):
		return "the runner ended so long after the job was assigned that it may have run it and given up delivering the result"
	case s.Is() == SuspectCut && (s.CleanExit || s.Exited && s.Job.StartedAt.After(s.ExitAt)) && !s.Recorded && !s.ContainerSeen:
		return "its runner ended by itself and has delivered every result: another one under the same system_id may work on it"
	case s.Is() == SuspectOrphan && !s.CleanExit:
		return "the runner was not seen to end by itself, with nothing left behind"
	case s.Is() == SuspectOrphan && s.Job.StartedAt.Before(s.StopAt.Add(-answerTakes)):
		return "it was assigned so long before the stop that it may have reached a runner that has died since"
	case s.Is() == SuspectOrphan && s.Job.StartedAt.After(s.ExitAt.Add(RequestOutlives)):
		return "it was assigned so long after the runner had ended that somebody may have started another"
	default:
		return ""
	}
}
