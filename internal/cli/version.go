package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  sluice version",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if p.json() {
				return p.printJSON(map[string]string{"version": p.Version, "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(p.Stdout, "sluice %s (%s)\n", p.Version, runtime.Version())
			return err
		},
	}
}
