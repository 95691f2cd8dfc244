package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
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

// completeOps completes the ID of an operation.
func (p *program) completeOps(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	return p.operationIDs(cmd, args, start, client.ListOperationsParams{}), cobra.ShellCompDirectiveNoFileComp
}

// completeUnfinished completes the ID of an operation that has not ended.
func (p *program) completeUnfinished(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	return p.operationIDs(cmd, args, start, client.ListOperationsParams{Unfinished: new(true)}), cobra.ShellCompDirectiveNoFileComp
}

func (p *program) operationIDs(cmd *cobra.Command, args []string, start string, params client.ListOperationsParams) []string {
	if len(args) > 0 {
		return nil
	}
	s, err := p.connect(cmd.Context(), app.RoleRead, commandLine(cmd, nil))
	if err != nil {
		return nil
	}
	defer s.Close()
	list, err := s.Operations(cmd.Context(), params)
	if err != nil {
		return nil
	}
	var words []string
	for i := range list.Operations {
		if op := &list.Operations[i]; strings.HasPrefix(op.Id, start) {
			words = append(words, cobra.CompletionWithDesc(op.Id, op.Fleet+"/"+op.Vm+" "+string(op.Kind)+" "+string(op.Phase)))
		}
	}
	return words
}
