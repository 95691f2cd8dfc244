package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Check the configuration, or print its schema",
		Example: "  sluice config validate --config sluice.yaml",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "validate [FILE]", Short: "Check a configuration file and that its secrets can be read",
		Long: `Validate names every mistake with its line and column, and every secret that
cannot be read. It opens no connection.`,
		Example: "  sluice config validate\n  sluice config validate /etc/sluice/sluice.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				p.configFile = args[0]
			}
			return p.validate()
		},
	}, &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration file",
		Example: "  sluice config schema >sluice.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := config.Schema()
			if err == nil {
				_, err = fmt.Fprintf(p.Stdout, "%s\n", text)
			}
			return err
		},
	})
	return cmd
}

func (p *program) validate() error {
	c, err := p.load()
	if err != nil {
		return err
	}
	if err := app.Check(c); err != nil {
		return usage(err)
	}
	vms, lost := 0, map[string]string{}
	for name, spec := range c.Specs() {
		vms += len(spec.VMs)
		lost[name] = lostJobs(spec)
	}
	if p.json() {
		return p.printJSON(map[string]any{"file": c.Path, "fleets": len(c.Fleets), "vms": vms, "lost_jobs": lost})
	}
	_, err = fmt.Fprintf(p.Stdout, "%s: good (fleets: %d, VMs: %d)\n", c.Path, len(c.Fleets), vms)
	for _, name := range c.Names() {
		if err == nil {
			_, err = fmt.Fprintf(p.Stdout, "fleet %s: lost jobs are %s\n", name, lost[name])
		}
	}
	return err
}

// lostJobs says what the configuration makes of jobs that no runner will finish.
func lostJobs(spec fleet.Spec) string {
	switch {
	case !spec.HasGitLab:
		return "not looked for (no gitlab.token)"
	case !spec.Recovery.Orphans:
		return "reported only (drain.recover_orphans: false)"
	case !spec.HasWriteToken:
		return "reported only (no gitlab.write_token)"
	case spec.Recovery.CutJobs:
		return "canceled and run again, cut jobs too"
	default:
		return "canceled and run again; cut jobs are canceled"
	}
}
