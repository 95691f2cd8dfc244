package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/config"
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
	vms := 0
	for _, f := range c.Fleets {
		vms += len(f.VMs.List())
	}
	if p.json() {
		return p.printJSON(map[string]any{"file": c.Path, "fleets": len(c.Fleets), "vms": vms})
	}
	_, err = fmt.Fprintf(p.Stdout, "%s: good (fleets: %d, VMs: %d)\n", c.Path, len(c.Fleets), vms)
	return err
}
