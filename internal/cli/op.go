package cli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
)

func (p *program) opCommand() *cobra.Command {
	op := &cobra.Command{
		Use: "op", Short: "List, show, watch, change, cancel and resume operations",
		Example: "  sluice op list --unfinished\n  sluice op watch op-0a1b",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	op.AddCommand(p.opList(), p.opShow(), p.opWatch(), p.opExtend(), p.opSetPolicy(), p.opSkipDrain(), p.opCancel(), p.opResume())
	return op
}

func (p *program) opList() *cobra.Command {
	var params client.ListOperationsParams
	var fleetName string
	var unfinished bool
	var limit int64
	cmd := &cobra.Command{
		Use: "list", Short: "List operations, newest first",
		Example: "  sluice op list\n  sluice op list --fleet shared --unfinished --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			set(&params.Fleet, fleetName)
			set(&params.Unfinished, unfinished)
			set(&params.Limit, limit)
			return p.reading(cmd, func(ctx context.Context) error {
				s, err := p.connect(ctx, app.RoleRead, commandLine(cmd, args))
				if err != nil {
					return err
				}
				defer s.Close()
				list, err := s.Operations(ctx, params)
				if err != nil {
					return err
				}
				return p.operations(list)
			})
		},
	}
	cmd.Flags().StringVar(&fleetName, "fleet", "", "only of this `FLEET`")
	cmd.Flags().BoolVar(&unfinished, "unfinished", false, "only those that have not ended")
	cmd.Flags().Int64Var(&limit, "limit", 50, "at most `N`")
	return cmd
}

func (p *program) operations(list *client.Operations) error {
	if p.json() {
		return p.printJSON(list)
	}
	return p.table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "OPERATION\tVM\tKIND\tPHASE\tASKED\tBY\tWAITS FOR / FAILED WITH")
		for i := range list.Operations {
			op := &list.Operations[i]
			note := p.waitsFor(op)
			if op.Failure != nil && op.Finished {
				note = op.Failure.Message
			}
			fmt.Fprintf(w, "%s\t%s/%s\t%s\t%s\t%s\t%s\t%s\n", op.Id, op.Fleet, op.Vm, op.Kind, op.Phase,
				p.date(op.CreatedAt), op.By.Name, note)
		}
	})
}

func (p *program) opShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show an operation and tell its story",
		Long: `Show prints what an operation is now, then its story: what host, GitLab and
provider said and when, what was decided of it and by which row of the drain's
table (docs/reference/decisions.md), what it waits for, until when, and what
happens then.`,
		Example: "  sluice op show op-0a1b",
		Args:    oneOperation, ValidArgsFunction: p.completeOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context) error {
				s, err := p.connect(ctx, app.RoleRead, commandLine(cmd, args))
				if err != nil {
					return err
				}
				defer s.Close()
				return p.show(ctx, s, args[0])
			})
		},
	}
}

func (p *program) show(ctx context.Context, s *session, id string) error {
	op, err := s.Operation(ctx, id)
	if err != nil {
		return err
	}
	if p.json() {
		return p.printJSON(op)
	}
	p.card(op)
	return p.journal(ctx, s, op)
}

func (p *program) opWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch ID", Short: "Follow an operation until it has ended",
		Long:    "Watch prints what happens to an operation. It works on nothing itself: Ctrl-C only ends the watching.",
		Example: "  sluice op watch op-0a1b",
		Args:    oneOperation, ValidArgsFunction: p.completeOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := p.connect(cmd.Context(), app.RoleRead, commandLine(cmd, args))
			if err != nil {
				return err
			}
			defer s.Close()
			op, err := s.Operation(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return p.follow(cmd.Context(), &session{Client: s.Client}, following{ops: []client.Operation{*op}, watching: true})
		},
	}
}

func (p *program) opCancel() *cobra.Command {
	var why string
	var stay time.Duration
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "End an operation and give intake back",
		Long: `Cancel ends an operation before its delete is committed and gives intake back;
after that there is no way back and it is refused. Alone it also does that work.`,
		Example: "  sluice op cancel op-0a1b",
		Args:    oneOperation, ValidArgsFunction: p.completeUnfinished,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.change(cmd, args, func(s *session) (*client.Operation, error) {
				return s.CancelBecause(cmd.Context(), args[0], why)
			}, true, stay)
		},
	}
	whyFlag(cmd, &why)
	lingerFlag(cmd, &stay)
	return cmd
}

func (p *program) opResume() *cobra.Command {
	var image string
	var stay time.Duration
	cmd := &cobra.Command{
		Use: "resume ID", Short: "Go on with an operation that is held, backing off, or left by a command",
		Long: `Resume goes on with an unfinished operation: one that is held after its delete
because it cannot create (--image corrects the image), one that backs off, or,
alone, one that an earlier command left.`,
		Example: "  sluice op resume op-0a1b\n  sluice op resume op-0a1b --image fedora-42",
		Args:    oneOperation, ValidArgsFunction: p.completeUnfinished,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.change(cmd, args, func(s *session) (*client.Operation, error) {
				return s.Resume(cmd.Context(), args[0], image)
			}, false, stay)
		},
	}
	cmd.Flags().StringVar(&image, "image", "", "a corrected `IMAGE`, while it is held in creating")
	lingerFlag(cmd, &stay)
	return cmd
}

// change asks for a change of an operation and, alone, works on it to its end.
func (p *program) change(cmd *cobra.Command, args []string, ask func(*session) (*client.Operation, error), canceling bool, stay time.Duration) error {
	return p.changeAndShow(cmd, args, ask, canceling, stay, func(op *client.Operation) error { return p.detached([]client.Operation{*op}) })
}

// changeAndShow is change; show tells of it where a server goes on with it.
func (p *program) changeAndShow(cmd *cobra.Command, args []string, ask func(*session) (*client.Operation, error), canceling bool, stay time.Duration, show func(*client.Operation) error) error {
	s, err := p.connect(cmd.Context(), app.RoleWork, commandLine(cmd, args))
	if err != nil {
		return err
	}
	defer s.Close()
	op, err := ask(s)
	if err != nil {
		return err
	}
	if !s.alone() {
		return show(op)
	}
	if err := p.leftovers(cmd.Context(), s, op.Id); err != nil {
		return err
	}
	err = p.follow(cmd.Context(), s, following{ops: []client.Operation{*op}, leave: canceling, linger: stay})
	if canceling && Status(err) == ExitFailed { // it was to end so
		return nil
	}
	return err
}
