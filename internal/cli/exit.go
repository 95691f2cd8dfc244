package cli

import (
	"errors"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The exit statuses (design.md section 11).
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2   // usage or configuration
	ExitJobCut      = 3   // done, but a job was cut
	ExitRefused     = 4   // refused by a safety rule; nothing was touched
	ExitHalted      = 5   // held: a person has to correct something, then resume it
	ExitInterrupted = 130 // 128 + SIGINT
)

// exit is an error that knows its status. A nil err was reported already.
type exit struct {
	status int
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage is an error in how the command was called.
func usage(err error) error { return &exit{status: ExitUsage, err: err} }

// Status is the one place where errors become exit statuses.
func Status(err error) int {
	if err == nil {
		return ExitDone
	}
	if e, ok := errors.AsType[*exit](err); ok {
		return e.status
	}
	switch fleet.CodeOf(err) {
	case fleet.CodeInvalid, fleet.CodeNotFound, client.CodeUnauthorized:
		return ExitUsage
	case fleet.CodeConflict, fleet.CodeForbidden:
		return ExitRefused
	case fleet.CodeCanceled:
		return ExitInterrupted
	default:
		return ExitFailed
	}
}

// outcome is the status of operations that have ended, the worst first.
func outcome(ops []client.Operation, interrupted bool) int {
	status := ExitDone
	for i := range ops {
		status = worse(status, outcomeOf(&ops[i]))
	}
	if interrupted && status != ExitDone && status != ExitJobCut {
		return ExitInterrupted
	}
	return status
}

func outcomeOf(op *client.Operation) int {
	switch {
	case !op.Finished:
		return ExitHalted
	case op.Phase == client.OperationPhaseSucceeded && length(op.CutJobs) > 0:
		return ExitJobCut
	case op.Phase == client.OperationPhaseSucceeded:
		return ExitDone
	case op.Phase == client.OperationPhaseFailed && refused(op):
		return ExitRefused
	default:
		return ExitFailed
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

// worse orders statuses: one that is held hides a failure, which hides a
// refusal, which hides a cut job.
func worse(a, b int) int {
	rank := map[int]int{ExitDone: 0, ExitJobCut: 1, ExitRefused: 2, ExitFailed: 3, ExitHalted: 4}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

func length[T any](list *[]T) int {
	if list == nil {
		return 0
	}
	return len(*list)
}
