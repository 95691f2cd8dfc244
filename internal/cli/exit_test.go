package cli

import (
	"errors"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestErrorsBecomeTheDocumentedStatuses(t *testing.T) {
	for want, errs := range map[int][]error{
		ExitDone:        {nil},
		ExitUsage:       {fleet.Errorf(fleet.CodeInvalid, "x"), fleet.Errorf(fleet.CodeNotFound, "x"), fleet.Errorf(client.CodeUnauthorized, "x"), usage(errors.New("x"))},
		ExitRefused:     {fleet.Errorf(fleet.CodeConflict, "x"), fleet.Errorf(fleet.CodeForbidden, "x")},
		ExitInterrupted: {fleet.Errorf(fleet.CodeCanceled, "x")},
		ExitFailed:      {fleet.Errorf(fleet.CodeUnavailable, "x"), fleet.Errorf(fleet.CodeInternal, "x"), errors.New("x")},
	} {
		for _, err := range errs {
			if got := Status(err); got != want {
				t.Errorf("%v: %d, want %d", err, got, want)
			}
		}
	}
}

func TestTheWorstOperationDecides(t *testing.T) {
	done := client.Operation{Finished: true, Phase: client.OperationPhaseSucceeded}
	cut := client.Operation{Finished: true, Phase: client.OperationPhaseSucceeded, CutJobs: &[]client.Job{{Id: 1}}}
	failed := client.Operation{Finished: true, Phase: client.OperationPhaseFailed, DeleteCommitted: true, Failure: &client.Failure{Code: "invalid"}}
	untouched := client.Operation{Finished: true, Phase: client.OperationPhaseFailed, Failure: &client.Failure{Code: "conflict"}}
	canceled := client.Operation{Finished: true, Phase: client.OperationPhaseCanceled}
	for _, c := range []struct {
		ops         []client.Operation
		interrupted bool
		want        int
	}{
		{[]client.Operation{done}, false, ExitDone},
		{[]client.Operation{done, cut}, false, ExitJobCut},
		{[]client.Operation{cut, untouched}, false, ExitRefused},
		{[]client.Operation{untouched, failed, cut}, false, ExitFailed},
		{[]client.Operation{canceled}, false, ExitFailed},
		{[]client.Operation{canceled}, true, ExitInterrupted},
		{[]client.Operation{done}, true, ExitDone},
		{[]client.Operation{failed, {Phase: client.OperationPhaseCreating, Held: new(true)}}, false, ExitHalted},
	} {
		if got := ending(c.ops, c.interrupted); got != c.want {
			t.Errorf("%+v: %d, want %d", c.ops, got, c.want)
		}
	}
}
