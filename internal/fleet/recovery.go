package fleet

import (
	"fmt"
	"slices"
	"time"
)

// RecoveryStep is the last step of a recovery that was committed. It is
// committed before its call is sent, so after a crash the call may have been.
type RecoveryStep string

// The steps.
const (
	RecoveryFound  RecoveryStep = ""       // nothing was sent
	RecoveryCancel RecoveryStep = "cancel" // a cancel
	RecoveryForce  RecoveryStep = "force"  // a cancel with force: canceling → canceled
	RecoveryRetry  RecoveryStep = "retry"  // a retry
	RecoveryEnd    RecoveryStep = "end"    // see Result
)

// RecoveryResult is how a recovery ended. It is a label of metrics.
type RecoveryResult string

// The results.
const (
	RecoveryRecovered RecoveryResult = "recovered" // it runs again
	RecoveryCanceled  RecoveryResult = "canceled"  // a cut job was ended, and is not run again
	RecoveryReported  RecoveryResult = "reported"  // left to a person
	RecoveryRefused   RecoveryResult = "refused"   // GitLab does not let us; left to a person
	RecoveryOvertaken RecoveryResult = "overtaken" // it ended, or somebody saw to it, meanwhile
)

// RecoveryResults lists them.
func RecoveryResults() []RecoveryResult {
	return []RecoveryResult{RecoveryRecovered, RecoveryCanceled, RecoveryReported, RecoveryRefused, RecoveryOvertaken}
}

// Limits of a recovery.
const (
	mostCancels = 3
	mostForces  = 2
	mostRetries = 2
	// replicaLag is how long readings may show a job as it was before an answered
	// call (facts/gitlab.md); postPause keeps calls without an answer apart.
	replicaLag = 10 * time.Second
	postPause  = 5 * time.Second
	// postLimit is how long a call that was sent may take to have its effect.
	postLimit = 30 * time.Second
	// recoveryLimit ends a recovery that GitLab gives no word on.
	recoveryLimit = 20 * time.Minute
)

// JobReading is one reading of a job and of its place in its pipeline.
type JobReading struct {
	ServerTime     time.Time `json:"server_time,omitzero"` // GitLab's clock, to the second; zero = not given
	Status         string    `json:"status"`
	SystemID       string    `json:"system_id,omitempty"` // of the manager it is linked to; "" = none
	StartedAt      time.Time `json:"started_at,omitzero"`
	FinishedAt     time.Time `json:"finished_at,omitzero"`
	PipelineStatus string    `json:"pipeline_status,omitempty"`
	Newer          int64     `json:"newer,omitempty"`    // a later job of its name in the pipeline: it was retried
	Canceled       []int64   `json:"canceled,omitempty"` // others of the pipeline that are canceled, or about to be
}

// Recovery is what was done about one job so far (design.md section 6).
type Recovery struct {
	Job      Job            `json:"job"`
	SystemID string         `json:"system_id"`
	Cut      bool           `json:"cut,omitempty"`   // it had begun: no orphan
	Again    bool           `json:"again,omitempty"` // it is to be run again
	Since    time.Time      `json:"since"`
	Step     RecoveryStep   `json:"step,omitempty"`
	StepAt   time.Time      `json:"step_at,omitzero"` // our clock, when the step was committed
	Posted   time.Time      `json:"posted,omitzero"`  // GitLab's clock, before the last call
	First    time.Time      `json:"first,omitzero"`   // the same, before the first call
	Tries    int            `json:"tries,omitempty"`  // calls of this step
	Answered bool           `json:"answered,omitempty"`
	Refused  bool           `json:"refused,omitempty"`
	NoForce  bool           `json:"no_force,omitempty"` // force was refused, or is of no use
	Before   *JobReading    `json:"before,omitempty"`   // the reading before the first cancel
	Result   RecoveryResult `json:"result,omitempty"`
	As       int64          `json:"as,omitempty"` // the job that runs in its place
	Why      string         `json:"why,omitempty"`
}

// RecoveryMove is what may be done next: a step, or the end with its result;
// the zero move is to look again later.
type RecoveryMove struct {
	Step   RecoveryStep
	Result RecoveryResult
	As     int64
	Why    string
}

func ends(result RecoveryResult, format string, args ...any) RecoveryMove {
	return RecoveryMove{Step: RecoveryEnd, Result: result, Why: fmt.Sprintf(format, args...)}
}

// Next decides by a reading that was taken after the last committed step. It
// never repeats a call whose effect may be there: a cancel is sent again only
// if the job still runs, a retry only if there still is no later job of its
// name, long after the call.
func (r *Recovery) Next(g JobReading, now time.Time) RecoveryMove {
	switch {
	case r.Step == RecoveryRetry:
		return r.afterRetry(g, now)
	case g.Newer != 0:
		return ends(RecoveryOvertaken, "somebody has retried it: job %d", g.Newer)
	case r.Step == RecoveryFound:
		return r.beforeCancel(g)
	default:
		return r.afterCancel(g, now)
	}
}

// beforeCancel refuses whatever is not exactly what was suspected.
func (r *Recovery) beforeCancel(g JobReading) RecoveryMove {
	switch {
	case g.Status == "canceling":
		return ends(RecoveryReported, "somebody has canceled it, and no runner is left to end it: cancel it by force, as a Maintainer can")
	case g.Status != "running":
		return ends(RecoveryOvertaken, "it is %s now", g.Status)
	case g.SystemID != r.SystemID:
		return ends(RecoveryReported, "GitLab does not link it to this VM any more")
	case !g.StartedAt.Equal(r.Job.StartedAt):
		return ends(RecoveryOvertaken, "it was started anew")
	case pipelineOver(g.PipelineStatus):
		return ends(RecoveryOvertaken, "its pipeline is %s", g.PipelineStatus)
	}
	return RecoveryMove{Step: RecoveryCancel}
}

// pipelineOver says whether nobody waits for the pipeline's jobs any more.
func pipelineOver(status string) bool {
	return slices.Contains([]string{"canceling", "canceled", "success", "failed", "skipped"}, status)
}

// afterCancel is the heart: it goes on to the retry only if the job was
// executing at the reading before, and is canceled or canceling now, by us. The
// cancel of a finished job is answered like any other and changes nothing, and
// finished jobs can be retried: a deployment would run twice.
func (r *Recovery) afterCancel(g JobReading, now time.Time) RecoveryMove {
	switch {
	case r.Refused:
		return ends(RecoveryRefused, "GitLab refuses its cancel to the write token")
	case g.Status == "running" && r.Step == RecoveryForce:
		return RecoveryMove{} // a replica lags
	case g.Status == "running" && now.Sub(r.StepAt) < r.pause():
		return RecoveryMove{} // it may be on its way, or a replica lags
	case g.Status == "running" && r.Tries < mostCancels:
		return RecoveryMove{Step: RecoveryCancel}
	case g.Status == "running":
		return ends(RecoveryRefused, "GitLab does not cancel it")
	case g.Status != "canceled" && g.Status != "canceling":
		return ends(RecoveryOvertaken, "it is %s now", g.Status)
	case r.othersCanceled(g):
		return ends(RecoveryOvertaken, "somebody has canceled it with its pipeline")
	case g.Status == "canceled" && r.canceledByOthers(g):
		return ends(RecoveryOvertaken, "somebody has canceled it")
	case g.Status == "canceling" && !r.Answered && r.Step == RecoveryCancel:
		return ends(RecoveryReported, "it is being canceled, and whether by Sluice is not known: it is not run again")
	case g.Status == "canceling" && r.mayForce():
		return RecoveryMove{Step: RecoveryForce}
	case !r.Again && g.Status == "canceling":
		return ends(RecoveryRefused, "it is being canceled, and only a Maintainer can end it, by force; its job is not run again (retry_cut_jobs)")
	case !r.Again:
		return ends(RecoveryCanceled, "it was canceled; its job is not run again (retry_cut_jobs)")
	}
	return RecoveryMove{Step: RecoveryRetry}
}

// pause is how long a cancel may take to show.
func (r *Recovery) pause() time.Duration {
	if r.Answered {
		return replicaLag
	}
	return postPause
}

func (r *Recovery) mayForce() bool {
	return !r.NoForce && (r.Step != RecoveryForce || r.Tries < mostForces)
}

// othersCanceled says whether another job of the pipeline was canceled since
// the reading before: whoever did that meant the pipeline.
func (r *Recovery) othersCanceled(g JobReading) bool {
	for _, id := range g.Canceled {
		if r.Before == nil || !slices.Contains(r.Before.Canceled, id) {
			return true
		}
	}
	return false
}

// canceledByOthers compares when the job was canceled with when our calls
// were under way, by GitLab's clock, which is told to the second.
func (r *Recovery) canceledByOthers(g JobReading) bool {
	if g.FinishedAt.IsZero() || r.First.IsZero() {
		return !r.Answered
	}
	return g.FinishedAt.Before(r.First.Add(-time.Second)) || g.FinishedAt.After(r.Posted.Add(postLimit))
}

func (r *Recovery) afterRetry(g JobReading, now time.Time) RecoveryMove {
	switch {
	case r.As != 0:
		return RecoveryMove{Step: RecoveryEnd, Result: RecoveryRecovered, As: r.As}
	case g.Newer != 0:
		return RecoveryMove{Step: RecoveryEnd, Result: RecoveryRecovered, As: g.Newer}
	case r.Refused:
		return ends(RecoveryRefused, "it was canceled, and GitLab refuses its retry to the write token: retry it")
	case now.Sub(r.StepAt) < postLimit:
		return RecoveryMove{} // the call may be under way
	case r.othersCanceled(g):
		return ends(RecoveryOvertaken, "somebody has canceled its pipeline")
	case r.Tries < mostRetries && (g.Status == "canceled" || g.Status == "canceling"):
		return RecoveryMove{Step: RecoveryRetry}
	}
	return ends(RecoveryRefused, "it was canceled, and its retry did not succeed: retry it")
}

// Begin records a step that is about to be committed.
func (r *Recovery) Begin(m RecoveryMove, g JobReading, now time.Time) {
	if r.Step == m.Step {
		r.Tries++
	} else {
		r.Tries = 1
	}
	if m.Step == RecoveryCancel && r.Before == nil {
		r.Before, r.First = &g, g.ServerTime
	}
	r.Answered, r.Refused = m.Step == RecoveryForce, false // a force follows an answered cancel
	r.Step, r.StepAt, r.Posted = m.Step, now, g.ServerTime
}

// Close records the end.
func (r *Recovery) Close(m RecoveryMove) {
	r.Step, r.Result, r.As, r.Why = RecoveryEnd, m.Result, m.As, m.Why
}

// Ended says whether nothing more is to be done.
func (r *Recovery) Ended() bool { return r.Step == RecoveryEnd }

// Answer records what came of the step's call. A refusal is definite; any
// other failure says nothing about the effect.
func (r *Recovery) Answer(err error) {
	refused := CodeOf(err) == CodeForbidden || CodeOf(err) == CodeNotFound
	switch {
	case err == nil:
		r.Answered = true
	case CodeOf(err) == CodeRateLimited:
		r.Tries-- // it was turned away, or not sent at all
	case refused && r.Step == RecoveryForce:
		r.NoForce = true
	case refused:
		r.Refused = true
	}
}

// Overdue says whether to give up, and with which end: GitLab has not answered
// for long.
func (r *Recovery) Overdue(now time.Time) (RecoveryMove, bool) {
	if now.Sub(r.Since) < recoveryLimit {
		return RecoveryMove{}, false
	}
	switch r.Step {
	case RecoveryFound:
		return ends(RecoveryReported, "GitLab could not be asked about it for %s", recoveryLimit), true
	case RecoveryRetry:
		return ends(RecoveryRefused, "a retry was asked for, and whether it runs again is not known: see its pipeline"), true
	default:
		return ends(RecoveryRefused, "its cancel was asked for, and what became of it is not known: see whether it has to be retried"), true
	}
}

// Outcome says for a person how the recovery ended.
func (r *Recovery) Outcome() string {
	switch {
	case r.Result == RecoveryRecovered && r.NoForce:
		return fmt.Sprintf("it runs again as job %d; GitLab goes on showing it as being canceled, which only a Maintainer can end", r.As)
	case r.Result == RecoveryRecovered:
		return fmt.Sprintf("it was canceled and runs again as job %d", r.As)
	case r.Result == RecoveryReported && r.Step == RecoveryEnd && r.Before == nil:
		return r.Why + "; nothing was done"
	default:
		return r.Why
	}
}
