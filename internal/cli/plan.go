package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
)

// plan is --dry-run: what would be asked for, and what the doctor finds on
// the VMs. It changes nothing, takes no lock, and works beside an engine.
func (p *program) plan(ctx context.Context, cmd *cobra.Command, fleetName string, body client.AskBody) error {
	s, err := p.connect(ctx, app.RoleLook, commandLine(cmd, nil))
	if err != nil {
		return err
	}
	defer s.Close()
	asked, err := s.Plan(ctx, fleetName, body)
	if err != nil {
		return err
	}
	report, err := s.Examine(ctx, fleetName, body.Vms)
	if err != nil {
		return err
	}
	if p.json() {
		err = p.printJSON(map[string]any{"operations": asked.Operations, "findings": report.Findings})
	} else {
		for i := range asked.Operations {
			p.planned(&asked.Operations[i])
		}
		p.findings(report)
	}
	if err == nil && hasErrors(report) {
		return &exit{status: ExitRefused}
	}
	return err
}

func (p *program) planned(op *client.Operation) {
	if op.Id != "" {
		fmt.Fprintf(p.Stdout, "%s/%s: would attach to %s (%s, %s)\n", op.Fleet, op.Vm, op.Id, op.Kind, op.Phase)
		return
	}
	drain := fmt.Sprintf("drain (cap %s, then %s)", op.Policy.Cap, op.Policy.OnOverrun)
	steps := map[client.OperationKind]string{
		client.OperationKindRecreate: drain + ", delete, create, verify",
		client.OperationKindDelete:   drain + ", delete",
		client.OperationKindCreate:   "create, verify; refused if the VM exists",
		client.OperationKindDrain:    drain + ", and stay drained",
		client.OperationKindUndrain:  "open intake again",
	}[op.Kind]
	if op.NoDrain != nil && *op.NoDrain {
		steps = "delete without a drain: running jobs are cut"
	}
	fmt.Fprintf(p.Stdout, "%s/%s: would %s: %s\n", op.Fleet, op.Vm, op.Kind, steps)
}
