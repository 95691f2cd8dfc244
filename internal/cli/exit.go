package cli

import (
	"errors"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/outcome"
)

// The exit statuses (design.md section 11).
const (
	ExitDone        = outcome.Done
	ExitFailed      = outcome.Failed
	ExitUsage       = outcome.Usage
	ExitJobCut      = outcome.JobCut
	ExitRefused     = outcome.Refused
	ExitHalted      = outcome.Halted
	ExitInterrupted = outcome.Interrupted
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
	if e, ok := errors.AsType[*exit](err); ok {
		return e.status
	}
	return outcome.OfError(err)
}

// ending is the status of operations that have ended, the worst first.
func ending(ops []client.Operation, interrupted bool) int {
	status := ExitDone
	for i := range ops {
		status = outcome.Worse(status, outcome.Of(&ops[i]))
	}
	if interrupted && status != ExitDone && status != ExitJobCut {
		return ExitInterrupted
	}
	return status
}
