package simgitlab

import (
	"bytes"
	"slices"
	"time"
)

// Verdict is what became of a job, by the instance's own knowledge.
type Verdict string

// The verdicts.
const (
	// VerdictPending: no runner has it yet.
	VerdictPending Verdict = "pending"
	// VerdictRunning: assigned, not finished, its VM not known to be gone.
	VerdictRunning Verdict = "running"
	// VerdictSucceeded: ended by itself, result success.
	VerdictSucceeded Verdict = "succeeded"
	// VerdictFailed: ended by itself, its script failed.
	VerdictFailed Verdict = "failed"
	// VerdictCanceled: ended by a user's cancel.
	VerdictCanceled Verdict = "canceled"
	// VerdictCut: it began on a VM and was ended by that VM's removal or by
	// the end of its runner.
	VerdictCut Verdict = "cut"
	// VerdictOrphaned: assigned, and the runner never spoke of it.
	VerdictOrphaned Verdict = "orphaned"
)

// JobRecord is one job's life.
type JobRecord struct {
	ID               int64     `json:"id"`
	Name             string    `json:"name"`
	Project          string    `json:"project"`
	ProjectID        int64     `json:"project_id"`
	Status           string    `json:"status"`
	FailureReason    string    `json:"failure_reason,omitempty"`
	Verdict          Verdict   `json:"verdict"`
	RunnerID         int64     `json:"runner_id,omitempty"`
	SystemID         string    `json:"system_id,omitempty"`
	ManagerID        int64     `json:"manager_id,omitempty"` // the link as readers see it
	AssignedAt       time.Time `json:"assigned_at,omitzero"`
	FinishedAt       time.Time `json:"finished_at,omitzero"`
	Heard            bool      `json:"heard"`
	ScriptEnded      bool      `json:"script_ended"`
	AfterScriptEnded bool      `json:"after_script_ended"`
	RetryOf          int64     `json:"retry_of,omitempty"`
	CanceledBy       string    `json:"canceled_by,omitempty"`
}

// Ledger is the instance's own account of what happened.
type Ledger struct {
	Jobs []JobRecord `json:"jobs"` // by id
	// Ran counts the jobs that a runner took up: all but pending and orphaned.
	Ran       int           `json:"ran"`
	Succeeded int           `json:"succeeded"`
	Failed    int           `json:"failed"`
	Canceled  int           `json:"canceled"`
	Cut       int           `json:"cut"`
	Orphaned  int           `json:"orphaned"`
	Running   int           `json:"running"`
	Pending   int           `json:"pending"`
	Damage    []TokenDamage `json:"damage"`
	// Removed are the individual entries that were removed after their VM was gone.
	Removed []int64 `json:"removed,omitempty"`
}

// cutReasons are failures that come from the VM or its runner, not the script.
var cutReasons = []string{
	"runner_interrupted", "runner_system_failure", "stuck_or_timeout_failure", "unknown_failure",
}

// VMGone tells the ledger that the VM behind a system_id was destroyed: what
// was still executing there can never end well. The cloud of a simulation and
// the harness of a test call this; GitLab itself cannot know.
func (s *Server) VMGone(systemID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[systemID] = s.now()
}

// Ledger returns the account as of now.
func (s *Server) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := Ledger{Jobs: []JobRecord{}, Damage: slices.Clone(s.damage), Removed: slices.Clone(s.removed)}
	jobs := s.st.jobsOf(func(*job) bool { return true })
	slices.Reverse(jobs)
	for _, j := range jobs {
		rec := s.record(j)
		l.Jobs = append(l.Jobs, rec)
		l.count(rec.Verdict)
	}
	return l
}

// Job returns one job's record; false if there is none.
func (s *Server) Job(id int64) (JobRecord, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.st.jobs[id]
	if j == nil {
		return JobRecord{}, false
	}
	return s.record(j), true
}

func (s *Server) record(j *job) JobRecord {
	return JobRecord{
		ID: j.id, Name: j.spec.Name, Project: j.spec.Project, ProjectID: j.projectID, Status: j.status,
		FailureReason: j.failureReason, Verdict: s.verdict(j), RunnerID: j.runnerID,
		SystemID: j.systemID, ManagerID: j.managerID, AssignedAt: j.assignedAt,
		FinishedAt: j.finishedAt, Heard: j.heard, RetryOf: j.retryOf, CanceledBy: j.canceledBy,
		ScriptEnded:      bytes.Contains(j.trace, []byte(ScriptEndedMark)),
		AfterScriptEnded: bytes.Contains(j.trace, []byte(AfterScriptEndedMark)),
	}
}

func (s *Server) verdict(j *job) Verdict {
	goneAt, gone := s.gone[j.systemID]
	gone = gone && j.assignedAt.Before(goneAt) // a later VM may have the same system_id
	lost := j.undelivered || gone && !j.heard
	switch {
	case j.systemID == "":
		if j.status == StatusCanceled {
			return VerdictCanceled
		}
		return VerdictPending
	case j.status == StatusSuccess:
		return VerdictSucceeded
	case lost && !j.heard:
		return VerdictOrphaned
	case j.status == StatusCanceled && !gone:
		return VerdictCanceled
	case j.status == StatusCanceled:
		if j.finishedAt.Before(goneAt) {
			return VerdictCanceled
		}
		return VerdictCut // canceled only after its VM was gone
	case j.status == StatusFailed && !slices.Contains(cutReasons, j.failureReason):
		return VerdictFailed
	case j.status == StatusFailed || gone:
		return VerdictCut
	}
	return VerdictRunning
}

func (l *Ledger) count(v Verdict) {
	counter := map[Verdict]*int{
		VerdictPending: &l.Pending, VerdictRunning: &l.Running, VerdictSucceeded: &l.Succeeded,
		VerdictFailed: &l.Failed, VerdictCanceled: &l.Canceled, VerdictCut: &l.Cut,
		VerdictOrphaned: &l.Orphaned,
	}[v]
	*counter++
	if v != VerdictPending && v != VerdictOrphaned {
		l.Ran++
	}
}
