package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/ci"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (p *program) ciCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ci", Short: "What the jobs of the CI/CD component run",
		Example: "  sluice ci recreate --server https://sluice.example.com --fleet shared --vms 'runner-01 runner-02'",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.ciRecreateCommand())
	return cmd
}

// ciFlags are the flags of a job.
type ciFlags struct {
	order    ci.Order
	vms      string
	mode     string
	reports  string
	patience time.Duration
}

func (p *program) ciRecreateCommand() *cobra.Command {
	f := &ciFlags{}
	cmd := &cobra.Command{
		Use: "recreate", Short: "Recreate VMs from a GitLab job, through a controller",
		Long: `Recreate asks a controller for all the VMs in one request, follows until they
serve, and leaves JUnit, dotenv and annotations in the directory of --reports,
also when it fails. It runs in a GitLab job and says who it is by the id_token
in $SLUICE_ID_TOKEN (a static token in $SLUICE_TOKEN is taken without one).

A retried job attaches to what its first try began. A job that is canceled
never aborts an operation; use sluice op cancel for that. A controller that does
not answer is tried again until --patience has passed.

Exit status as everywhere, so that allow_failure:exit_codes can tell 3 (done,
but a job was cut) from a failure.`,
		Example: "  sluice ci recreate --server https://sluice.example.com --fleet shared --vms 'runner-01 runner-02'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.ciRecreate(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.order.Fleet, "fleet", "", "the `FLEET`")
	flags.StringVar(&f.vms, "vms", "", "the `NAMES` of its VMs, with spaces or commas between them")
	flags.StringVar(&f.order.Image, "image", "", "the `IMAGE` of the new VMs, in the provider's words (else the fleet's own)")
	flags.StringVar(&f.order.Cap, "cap", "", "how long jobs may go on after intake was stopped, such as `10m` (else the fleet's)")
	flags.StringVar(&f.order.OnOverrun, "on-overrun", "fleet", "when the cap passes with a job running: `POLICY` is proceed, wait, abort or fleet (the fleet's own)")
	flags.IntVar(&f.order.Parallel, "parallel", 0, "work on `N` VMs at once (else the fleet's max_unavailable)")
	flags.StringVar(&f.mode, "mode", "follow", "`MODE` is follow (until the end) or detach (until it is accepted)")
	flags.StringVar(&f.reports, "reports", "sluice", "the `DIRECTORY` for "+ci.JUnitFile+", "+ci.DotenvFile+" and "+ci.AnnotationsFile)
	flags.DurationVar(&f.patience, "patience", 5*time.Minute, "how long to try again when the controller does not answer")
	return cmd
}

func (p *program) ciRecreate(ctx context.Context, f *ciFlags) error {
	if f.mode != "follow" && f.mode != "detach" {
		return usage(fleet.Errorf(fleet.CodeInvalid, "--mode %q is not known", f.mode).WithHint("use follow or detach"))
	}
	if f.reports == "" || f.patience < 0 {
		return usage(fmt.Errorf("--reports must name a directory, and --patience must not be negative"))
	}
	f.order.VMs = ci.Names(f.vms)
	inGitLab := p.Getenv("GITLAB_CI") == "true"
	status := ci.Run(ctx, ci.Options{
		Order: f.order, Place: ci.PlaceOf(p.Getenv), Server: cmp.Or(p.server, p.Getenv("SLUICE_SERVER")),
		Token: cmp.Or(p.Getenv("SLUICE_ID_TOKEN"), p.Getenv("SLUICE_TOKEN")), Detach: f.mode == "detach",
		Reports: f.reports, Patience: f.patience, Out: p.Stdout, Sections: inGitLab,
		Colour: p.paint.on || inGitLab && p.Getenv("NO_COLOR") == "", Signals: p.Signals, Now: p.Now,
	})
	if status == ExitDone {
		return nil
	}
	return &exit{status: status}
}
