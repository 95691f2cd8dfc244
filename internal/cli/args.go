package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// someVMs wants at least one FLEET/VM.
func someVMs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("name a VM: FLEET/VM")
	}
	return nil
}

// oneOperation wants one operation's ID.
func oneOperation(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("name one operation: its ID (`sluice op list` shows them)")
	}
	return nil
}

// noSuchCommand refuses a word where a command belongs, and says which command
// may have been meant.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf(": did you mean %q?", near[0])
	}
	return errors.New(text)
}

// flagError says where the help is, and of a duration without a unit how to
// write it.
func flagError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok && strings.Contains(err.Error(), "missing unit in duration") {
		value := wrong.GetValue()
		return usage(fleet.Errorf(fleet.CodeInvalid, "--%s %s has no unit (%s)", wrong.GetFlag().Name, value, help).
			WithHint("write %ss, %sm or %sh", value, value, value))
	}
	return usage(fmt.Errorf("%w (%s)", err, help))
}

// target reads FLEET/VM… of one fleet.
func (p *program) target(args []string) (fleetName string, vms []string, err error) {
	for _, arg := range args {
		ref, err := fleet.ParseRef(arg)
		if err != nil {
			return "", nil, usage(p.meantVM(arg, err))
		}
		if fleetName != "" && ref.Fleet != fleetName {
			return "", nil, usage(fleet.Errorf(fleet.CodeInvalid, "VMs of two fleets in one command: %s and %s", fleetName, ref.Fleet).
				WithHint("run the command once for each fleet: a request is accepted whole or not at all"))
		}
		fleetName, vms = ref.Fleet, append(vms, ref.VM)
	}
	return fleetName, vms, nil
}

// meantVM makes the hint name a VM of the configuration, where there is one:
// the one of that name, else the first.
func (p *program) meantVM(arg string, err error) error {
	wrong, ok := errors.AsType[*fleet.Error](err)
	words, _ := p.completeVMs(nil, nil, "")
	if !ok || len(words) == 0 {
		return err
	}
	for _, word := range words {
		if strings.HasSuffix(word, "/"+arg) {
			return wrong.WithHint("write %s", word)
		}
	}
	return wrong.WithHint("write FLEET/VM, for example %s", words[0])
}
