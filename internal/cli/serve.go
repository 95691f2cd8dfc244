package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Run the engine and the API",
		Long: `Serve works on all operations, those that earlier processes left included, and
answers on the Unix socket (mode 0600) and, if server.listen is set, on TCP.
SIGTERM ends it at any moment: what is unfinished goes on after the next start.`,
		Example: "  sluice serve --config /etc/sluice/sluice.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.load()
			if err != nil {
				return err
			}
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			go func() {
				select {
				case <-p.Signals:
					stop()
				case <-ctx.Done():
				}
			}()
			own, err := p.Engine.Open(ctx, c, RoleServe, commandLine(cmd, args), p.Stderr)
			if err != nil {
				return err
			}
			err = own.Serve(ctx)
			if closed := own.Close(); err == nil {
				err = closed
			}
			return err
		},
	}
}

// sabotages are the wrong ways that the demo can show.
func sabotages() []string { return []string{"podman-only", "stop-first", "by-name"} }

func (p *program) demoCommand() *cobra.Command {
	o := DemoOptions{}
	cmd := &cobra.Command{
		Use: "demo", Short: "Recreate a small simulated fleet while it works",
		Long: `Demo starts a small world in this process: a GitLab, four VMs with an SSH server
each and busy runners, and a cloud. It recreates the VMs one by one and shows
the ledger: jobs run, jobs cut. Nothing outside of this process is touched.

--sabotage does it in a wrong way that scripts in use have, and ends non-zero
because the ledger shows the damage.`,
		Example: "  sluice demo --once\n  sluice demo --once --sabotage podman-only",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Sabotage != "" && !slices.Contains(sabotages(), o.Sabotage) {
				return usage(fleet.Errorf(fleet.CodeInvalid, "--sabotage %q is not known", o.Sabotage).WithHint("use podman-only, stop-first or by-name"))
			}
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			go func() {
				select {
				case <-p.Signals:
					stop()
				case <-ctx.Done():
				}
			}()
			o.JSON, o.Out, o.Err, o.Colour = p.json(), p.Stdout, p.Stderr, p.paint.on
			if p.Demo == nil {
				return fleet.Errorf(fleet.CodeInternal, "this build has no demo")
			}
			if err := p.Demo.Run(ctx, o); err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "recreate each VM once, print the summary and end")
	cmd.Flags().StringVar(&o.Sabotage, "sabotage", "", "do it wrongly: `HOW` is podman-only, stop-first or by-name")
	return cmd
}
