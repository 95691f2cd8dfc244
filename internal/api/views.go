package api

import (
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Operation is one durable action on one VM, as callers see it.
type Operation struct {
	ID         string      `json:"id"`
	Fleet      string      `json:"fleet"`
	VM         string      `json:"vm"`
	Kind       string      `json:"kind" enum:"recreate,delete,create,drain,undrain"`
	Phase      string      `json:"phase" enum:"queued,preflight,draining,deleting,creating,verifying,restoring,succeeded,failed,canceled"`
	Finished   bool        `json:"finished" doc:"It has ended: succeeded, failed or canceled."`
	By         Actor       `json:"by" doc:"Who asked."`
	Image      string      `json:"image,omitempty" doc:"The image asked for; empty: the fleet's own."`
	Policy     Policy      `json:"policy" doc:"The drain policy of this request."`
	NoDrain    bool        `json:"no_drain,omitempty"`
	CreatedAt  time.Time   `json:"created_at"`
	UpdatedAt  time.Time   `json:"updated_at"`
	PhaseSince time.Time   `json:"phase_since"`
	FinishedAt *time.Time  `json:"finished_at,omitempty"`
	Waiting    string      `json:"waiting,omitempty" doc:"What it waits for."`
	Until      *time.Time  `json:"until,omitempty" doc:"When that ends, if it does."`
	Then       string      `json:"then,omitempty" doc:"What happens at that moment."`
	Readings   []Reading   `json:"readings,omitempty" doc:"What host, GitLab and provider last said of the old VM, in the words of the events of kind reading."`
	Decision   *Decision   `json:"decision,omitempty" doc:"What the table of the drain last made of the readings."`
	Jobs       []Job       `json:"jobs,omitempty" doc:"The jobs that the drain waits for, as last seen."`
	StoppedAt  *time.Time  `json:"stopped_at,omitempty" doc:"When intake was stopped; the cap counts from here."`
	Deadline   *time.Time  `json:"deadline,omitempty" doc:"When the cap passes."`
	HardCapAt  *time.Time  `json:"hard_cap_at,omitempty" doc:"When the waiting ends under on_overrun wait."`
	Verdict    string      `json:"verdict,omitempty" doc:"How the drain ended."`
	Committed  bool        `json:"delete_committed" doc:"The intent to delete is stored: there is no way back."`
	CutJobs    []Job       `json:"cut_jobs,omitempty" doc:"Jobs that were ended by the removal of the VM."`
	Held       bool        `json:"held,omitempty" doc:"It waits for a person: resume it."`
	Canceling  bool        `json:"cancel_requested,omitempty"`
	Old        Incarnation `json:"old" doc:"The VM as it was found."`
	New        Incarnation `json:"new" doc:"The VM that came."`
	Failure    *Failure    `json:"failure,omitempty" doc:"Why it failed, or what it struggles with."`
	Attached   bool        `json:"attached,omitempty" doc:"It ran already when it was asked for."`
	Chores     []Chore     `json:"chores,omitempty" doc:"What follows it."`
	Found      []string    `json:"found,omitempty" doc:"Orphaned and cut jobs that were found, with their links."`
}

// Actor is who asked, from where, and why.
type Actor struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Policy is a drain policy; durations are text such as 10m0s.
type Policy struct {
	Cap           string `json:"cap"`
	OnOverrun     string `json:"on_overrun"`
	HardCap       string `json:"hard_cap"`
	Unreachable   string `json:"unreachable"`
	ReachDeadline string `json:"reach_deadline"`
	OnUnproven    string `json:"on_unproven"`
}

// Job is one CI job.
type Job struct {
	ID      int64  `json:"id"`
	Name    string `json:"name,omitempty"`
	Project string `json:"project,omitempty"`
	Status  string `json:"status,omitempty"`
	URL     string `json:"url,omitempty"`
}

// Reading is what one source of evidence says.
type Reading struct {
	Source string    `json:"source" enum:"host,gitlab,provider"`
	At     time.Time `json:"at" doc:"When it first said so; it has said nothing else since, whenever it was asked."`
	Text   string    `json:"text"`
}

// Decision is what the table of the drain made of the readings.
type Decision struct {
	At     time.Time `json:"at" doc:"When it was first decided so."`
	Row    int       `json:"row,omitempty" doc:"The row of the table (docs/reference/decisions.md); none: a person decided."`
	Rule   string    `json:"rule,omitempty" doc:"The row, in words."`
	Reason string    `json:"reason"`
}

// Incarnation is one life of a VM.
type Incarnation struct {
	Instance string `json:"instance,omitempty"`
	BootID   string `json:"boot_id,omitempty"`
	SystemID string `json:"system_id,omitempty"`
	Manager  int64  `json:"manager,omitempty"`

	Entry     int64  `json:"entry,omitempty" doc:"GitLab's number of the VM's own runner entry, under registration individual."`
	EntryName string `json:"entry_name,omitempty" doc:"What GitLab calls that entry."`
}

// Failure is an error with its code and hint.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Chore is durable work that follows an operation.
type Chore struct {
	Kind       string     `json:"kind"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	NextAt     *time.Time `json:"next_at,omitempty" doc:"When it looks again, if it has not ended."`
	Outcome    string     `json:"outcome,omitempty"`
}

// VM is one member of a fleet.
type VM struct {
	Fleet     string     `json:"fleet"`
	VM        string     `json:"vm"`
	State     string     `json:"state" enum:"serving,draining,drained,restoring,missing,creating,held,failed"`
	Instance  string     `json:"instance,omitempty"`
	SystemID  string     `json:"system_id,omitempty"`
	Entry     int64      `json:"entry,omitempty" doc:"GitLab's number of its own runner entry, under registration individual."`
	Address   string     `json:"address,omitempty"`
	Image     string     `json:"image,omitempty" doc:"Of its last create by Sluice."`
	Operation *Operation `json:"operation,omitempty" doc:"The unfinished operation on it."`
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
}

// Fleet is one fleet with its numbers.
type Fleet struct {
	Name           string         `json:"name"`
	RunnerID       int64          `json:"runner_id,omitempty"`
	Registration   string         `json:"registration,omitempty" enum:"fleet,individual,none" doc:"Whether the VMs share the runner entry, and what is removed in GitLab after a delete."`
	GitLabURL      string         `json:"gitlab_url"`
	VMs            int            `json:"vms"`
	States         map[string]int `json:"states" doc:"VMs by state."`
	MaxUnavailable int            `json:"max_unavailable"`
	Policy         Policy         `json:"policy"`
	GitLab         bool           `json:"gitlab" doc:"A GitLab token is configured."`
	RunnerToken    bool           `json:"runner_token" doc:"A runner token is configured."`
	Blind          string         `json:"blind,omitempty" doc:"What cannot be seen for want of a token."`
}

// Event is one line of the journal.
type Event struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at" doc:"When it happened; of a reading, when it was taken."`
	Operation string    `json:"operation,omitempty"`
	Fleet     string    `json:"fleet,omitempty"`
	VM        string    `json:"vm,omitempty"`
	Kind      string    `json:"kind" doc:"asked, phase, note, reading, warning, orphan, cut."`
	Phase     string    `json:"phase,omitempty"`
	Text      string    `json:"text"`
	Data      any       `json:"data,omitempty" doc:"Of a reading its source; of a decision of the drain's table its row and rule, and of a wait until when, then what."`
}

func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func policyView(p fleet.DrainPolicy) Policy {
	return Policy{
		Cap: p.Cap.String(), OnOverrun: string(p.OnOverrun), HardCap: p.HardCap.String(),
		Unreachable: string(p.Unreachable), ReachDeadline: p.ReachDeadline.String(), OnUnproven: string(p.OnUnproven),
	}
}
