package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
)

func (p *program) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status [FLEET]", Short: "Show fleets, or the VMs of one",
		Long: `Status shows what the journal says: which VM serves, which is worked on and
what that waits for. It asks no host and works beside a running engine.`,
		Example: "  sluice status\n  sluice status shared --output json",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: p.completeFleets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context) error {
				s, err := p.connect(ctx, app.RoleRead, commandLine(cmd, args))
				if err != nil {
					return err
				}
				defer s.Close()
				return p.status(ctx, s, args)
			})
		},
	}
}

func (p *program) status(ctx context.Context, s *session, args []string) error {
	if len(args) == 0 {
		fleets, err := s.Fleets(ctx)
		if err != nil {
			return err
		}
		return p.fleets(fleets)
	}
	vms, err := s.VMs(ctx, args[0])
	if err != nil {
		return err
	}
	return p.vms(vms)
}

func (p *program) fleets(list *client.Fleets) error {
	if p.json() {
		return p.printJSON(list)
	}
	err := p.table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "FLEET\tVMS\tSTATES\tRUNNER\tDRAIN")
		for _, f := range list.Fleets {
			var states []string
			for _, word := range slices.Sorted(maps.Keys(f.States)) {
				states = append(states, fmt.Sprintf("%d %s", f.States[word], word))
			}
			runner := "-"
			if id := deref(f.RunnerId); id != 0 {
				runner = fmt.Sprintf("#%d", id)
			} else if deref(f.Registration) == client.FleetRegistrationIndividual {
				runner = "one per VM"
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\tcap %s, then %s\n", f.Name, f.Vms, strings.Join(states, ", "), runner, short(f.Policy.Cap), f.Policy.OnOverrun)
		}
	})
	for _, f := range list.Fleets {
		if f.Blind != nil {
			fmt.Fprintf(p.Stderr, "sluice: fleet %s: %s\n", f.Name, *f.Blind)
		}
	}
	return err
}

func (p *program) vms(list *client.VMs) error {
	if p.json() {
		return p.printJSON(list)
	}
	unseen := false
	err := p.table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "VM\tSTATE\tINSTANCE\tOPERATION")
		for _, vm := range list.Vms {
			state, work := string(vm.State), "-"
			if state == "serving" && deref(vm.Instance) == "" {
				state, unseen = state+"?", true
			}
			if op := vm.Operation; op != nil {
				work = fmt.Sprintf("%s %s %s", op.Id, op.Kind, op.Phase)
				if text := p.waitsFor(op); text != "" {
					work += ": " + text
				}
			}
			fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\n", vm.Fleet, vm.Vm, state, dash(deref(vm.Instance)), work)
		}
	})
	if err == nil && unseen {
		_, err = fmt.Fprintf(p.Stdout, "serving?: not looked at yet, taken to serve; `sluice doctor %s` looks\n", list.Vms[0].Fleet)
	}
	return err
}
