package cli

import (
	"context"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
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
			ctx, stop := p.untilSignal(cmd.Context())
			defer stop()
			own, err := app.Open(ctx, app.Options{
				Config: c, Role: app.RoleServe, Command: commandLine(cmd, args), Version: p.Version, Log: p.Stderr,
			})
			switch {
			case err != nil && ctx.Err() != nil:
				return nil // told to stop before it was ready: that is no failure, whatever it was at
			case err != nil:
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

// untilSignal yields a context that ends at the first signal.
func (p *program) untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(parent)
	go func() {
		select {
		case <-p.Signals:
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// reading runs a command that changes nothing: Ctrl-C just ends it.
func (p *program) reading(cmd *cobra.Command, run func(context.Context) error) error {
	ctx, stop := p.untilSignal(cmd.Context())
	defer stop()
	err := run(ctx)
	if ctx.Err() != nil {
		return &exit{status: ExitInterrupted}
	}
	return err
}
