package ci

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/outcome"
)

// State is how one VM's operation, or all of them, ended for this job. The
// words are part of the dotenv report.
type State string

// The states, the worst last.
const (
	StateSucceeded State = "succeeded"
	StateRunning   State = "running" // the job ended first: the controller goes on
	StateJobCut    State = "job_cut" // done, but a job was cut
	StateNotAsked  State = "not_asked"
	StateCanceled  State = "canceled"
	StateRefused   State = "refused" // by a rule; nothing was touched
	StateFailed    State = "failed"
	StateHeld      State = "held" // the old VM is gone, and a person is needed
)

// worst is the state of a whole job.
func worst(a, b State) State {
	rank := map[State]int{
		StateSucceeded: 1, StateRunning: 2, StateJobCut: 3, StateNotAsked: 4, StateCanceled: 5, StateRefused: 6, StateFailed: 7, StateHeld: 8,
	}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// stateOf says how an operation stands.
func stateOf(op *client.Operation) State {
	switch {
	case deref(op.Held):
		return StateHeld
	case !op.Finished:
		return StateRunning
	case op.Phase == client.OperationPhaseCanceled:
		return StateCanceled
	}
	switch outcome.Of(op) {
	case outcome.Done:
		return StateSucceeded
	case outcome.JobCut:
		return StateJobCut
	case outcome.Refused:
		return StateRefused
	default:
		return StateFailed
	}
}

// status is the exit status of a state that an operation ended in.
func (s State) status() int {
	return map[State]int{
		StateSucceeded: outcome.Done, StateJobCut: outcome.JobCut, StateRefused: outcome.Refused, StateHeld: outcome.Halted,
		StateFailed: outcome.Failed, StateCanceled: outcome.Failed,
	}[s]
}

// headline says in one line how an operation stands.
func headline(op *client.Operation) string {
	state := stateOf(op)
	text := fmt.Sprintf("%s/%s: %s %s", clean(op.Fleet), clean(op.Vm), clean(string(op.Kind)), clean(string(op.Phase)))
	switch state {
	case StateHeld:
		text = fmt.Sprintf("%s/%s: held in %s: the controller waits for a person", clean(op.Fleet), clean(op.Vm), clean(string(op.Phase)))
	case StateRefused:
		text += " before anything was touched"
	case StateRunning:
		return text + " (goes on at the controller)"
	}
	if took := took(op); took > 0 {
		text += " in " + took.Round(time.Second).String()
	}
	before, after := clean(deref(op.Old.Instance)), clean(deref(op.New.Instance))
	if after != "" && before != after && (state == StateSucceeded || state == StateJobCut) {
		if before == "" {
			before = "none"
		}
		text += fmt.Sprintf(" (instance %s → %s)", before, after)
	}
	return text
}

// took is how long an operation lasted; 0 if it goes on.
func took(op *client.Operation) time.Duration {
	if op.FinishedAt == nil {
		return 0
	}
	return max(op.FinishedAt.Sub(op.CreatedAt), 0)
}

// reasons say why an operation ended as it did and what to do next, one line
// each.
func reasons(op *client.Operation) []string {
	var lines []string
	if op.Failure != nil && stateOf(op) != StateSucceeded {
		lines = append(lines, "reason: "+clean(op.Failure.Message)+" ("+clean(op.Failure.Code)+")")
		if hint := clean(deref(op.Failure.Hint)); hint != "" {
			lines = append(lines, "next: "+hint)
		}
	}
	switch {
	case deref(op.Held):
		lines = append(lines, "waits for: "+clean(deref(op.Waiting)), "next: sluice op resume "+clean(op.Id)+", with --image if another image is needed")
	case op.Finished && op.Phase == client.OperationPhaseFailed && op.DeleteCommitted:
		lines = append(lines, "see: sluice op show "+clean(op.Id)+"; the VM stays as it is for inspection")
	}
	for _, job := range cut(op) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("a job was cut: job %d %s", job.Id, clean(deref(job.Url)))))
	}
	return lines
}

func cut(op *client.Operation) []client.Job {
	if op.CutJobs == nil {
		return nil
	}
	return *op.CutJobs
}

// link is where an operation can be seen; it needs a token, as the API does.
func link(server, id string) string {
	return strings.TrimRight(server, "/") + "/api/v1/operations/" + url.PathEscape(id)
}
