package fleet

import (
	"testing"
	"time"
)

// canceledByUs is a recovery of an orphan whose cancel GitLab has answered.
func canceledByUs() (Recovery, JobReading) {
	r := Recovery{Job: testJob, SystemID: testExpected.SystemID, Again: true, Since: testNow}
	before := JobReading{ServerTime: testNow, Status: "running", SystemID: r.SystemID, PipelineStatus: "running"}
	r.Begin(RecoveryMove{Step: RecoveryCancel}, before, testNow)
	r.Answer(nil)
	after := before
	after.ServerTime, after.Status, after.FinishedAt = testNow.Add(time.Second), "canceled", testNow.Add(time.Second)
	return r, after
}

// Design section 6: the cancel of a finished job is answered like any other and
// changes nothing, and finished jobs can be retried: a deployment would run twice.
func TestAJobIsRunAgainOnlyIfItIsSeenCanceled(t *testing.T) {
	r, after := canceledByUs()
	if move := r.Next(after, testNow); move.Step != RecoveryRetry {
		t.Fatalf("canceled by us: %+v", move)
	}
	for _, status := range []string{"success", "failed", "pending", "something-new"} {
		after.Status = status
		if move := r.Next(after, testNow); move.Result != RecoveryOvertaken {
			t.Errorf("%s after the cancel: %+v", status, move)
		}
	}
}

func TestARetryIsNotSentAgainOnceTheJobRunsAnew(t *testing.T) {
	r, after := canceledByUs()
	r.Begin(RecoveryMove{Step: RecoveryRetry}, after, testNow)
	after.Newer = 43
	if move := r.Next(after, testNow.Add(time.Hour)); move.Result != RecoveryRecovered || move.As != 43 {
		t.Errorf("job 43 is there, and the answer was lost: %+v", move)
	}
}

func TestAJobThatMayHaveRunWhileGitLabWasAwayIsLeftToAPerson(t *testing.T) {
	s := Suspect{Job: testJob, TraceEmpty: true, Runner: RunnerGone, CleanExit: true}
	s.Job.StartedAt = testNow
	s.ExitAt = testNow.Add(time.Minute)
	if doubt := s.Doubt(); doubt != "" || s.Is() != SuspectOrphan {
		t.Fatalf("an orphan of the book: %q", doubt)
	}
	for name, change := range map[string]func(*Suspect){
		"an outage":              func(s *Suspect) { s.Unsure = true },
		"seventeen minutes":      func(s *Suspect) { s.ExitAt = testNow.Add(17 * time.Minute) },
		"intake was opened":      func(s *Suspect) { s.Reopened = true },
		"it was ended by others": func(s *Suspect) { s.CleanExit = false },
	} {
		other := s
		if change(&other); other.Doubt() == "" {
			t.Errorf("%s: it is run again", name)
		}
	}
}
