package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// completeVMs completes FLEET/VM from the configuration: no server is asked.
func (p *program) completeVMs(_ *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	c, err := p.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	named := map[string]bool{}
	for _, arg := range args {
		named[arg] = true
	}
	var words []string
	for _, fleetName := range c.Names() {
		for _, vm := range c.Fleets[fleetName].VMs.List() {
			if word := fleetName + "/" + vm; !named[word] && strings.HasPrefix(word, start) {
				words = append(words, word)
			}
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeFleets completes one FLEET.
func (p *program) completeFleets(_ *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	c, err := p.load()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	for _, name := range c.Names() {
		if strings.HasPrefix(name, start) {
			words = append(words, name)
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
