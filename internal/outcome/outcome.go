// Package outcome says what the end of operations comes to, as an exit status
// (design.md section 11). It owns the numbers and their order; it must not
// know who asks, nor how anything is shown.
package outcome

import (
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The exit statuses.
const (
	Done        = 0
	Failed      = 1
	Usage       = 2   // usage or configuration
	JobCut      = 3   // done, but a job was cut
	Refused     = 4   // refused by a safety rule; nothing was touched
	Halted      = 5   // held: a person has to correct something, then resume it
	Interrupted = 130 // 128 + SIGINT
)

// Of is the status of one operation that has ended, or that waits for a person.
func Of(op *client.Operation) int {
	switch {
	case !op.Finished:
		return Halted
	case op.Phase == client.OperationPhaseSucceeded && op.CutJobs != nil && len(*op.CutJobs) > 0:
		return JobCut
	case op.Phase == client.OperationPhaseSucceeded:
		return Done
	case op.Phase == client.OperationPhaseFailed && refused(op):
		return Refused
	default:
		return Failed
	}
}

// refused says whether an operation failed on a rule before anything was
// touched.
func refused(op *client.Operation) bool {
	if op.StoppedAt != nil || op.DeleteCommitted || op.Failure == nil {
		return false
	}
	switch fleet.Code(op.Failure.Code) {
	case fleet.CodeInvalid, fleet.CodeForbidden, fleet.CodeConflict, fleet.CodeImageMissing:
		return true
	default:
		return false
	}
}

// Worse orders statuses: one that is held hides a failure, which hides a
// refusal, which hides a cut job.
func Worse(a, b int) int {
	rank := map[int]int{Done: 0, JobCut: 1, Refused: 2, Failed: 3, Halted: 4}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// OfError is the status of a request that was refused or never answered.
func OfError(err error) int {
	if err == nil {
		return Done
	}
	switch fleet.CodeOf(err) {
	case fleet.CodeInvalid, fleet.CodeNotFound, client.CodeUnauthorized:
		return Usage
	case fleet.CodeConflict, fleet.CodeForbidden:
		return Refused
	case fleet.CodeCanceled:
		return Interrupted
	default:
		return Failed
	}
}
