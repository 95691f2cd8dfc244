package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// program is one run of the command line.
type program struct {
	Env
	configFile string
	server     string
	output     string
	paint      palette
	idle       func() bool // whether nobody runs the engine; nil beside a server
}

// Main runs a command and yields its exit status. What went wrong is on
// Stderr: what, where, what to do next.
func Main(ctx context.Context, env Env) int {
	p := &program{Env: env}
	root := p.root()
	root.SetArgs(env.Args)
	err := root.ExecuteContext(ctx)
	p.report(err)
	return Status(err)
}

// Command is the whole tree, for the reference page.
func Command(env Env) *cobra.Command { return (&program{Env: env}).root() }

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Drain, delete and recreate GitLab runner VMs without cutting a job",
		Long: `Sluice drains, deletes and recreates the VMs of a GitLab runner fleet. It stops
a VM's intake, waits until its jobs have ended and their results are delivered,
proves it, and only then lets the VM go.

Exit status: 0 done; 1 failed; 2 usage or configuration; 3 done, but a job was
cut; 4 refused by a safety rule, nothing was touched; 5 held, a person has to
correct something; 130 interrupted.`,
		Example:       "  sluice doctor shared\n  sluice recreate shared/runner-01",
		SilenceErrors: true, SilenceUsage: true,
		Args: noSuchCommand,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			p.paint = newPalette(p.Stdout, p.Getenv)
			if p.output != "text" && p.output != "json" {
				return usage(fmt.Errorf("--output %q is not known (text or json)", p.output))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetIn(p.Stdin)
	flags := root.PersistentFlags()
	flags.StringVar(&p.configFile, "config", "", "configuration `FILE` (else $SLUICE_CONFIG, ./sluice.yaml, $XDG_CONFIG_HOME/sluice/sluice.yaml, /etc/sluice/sluice.yaml)")
	flags.StringVar(&p.server, "server", "", "`URL` of a Sluice server (else $SLUICE_SERVER; its token is in $SLUICE_TOKEN)")
	flags.StringVar(&p.output, "output", "text", "`FORMAT` is text or json")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		p.serveCommand(), p.demoCommand(),
		p.recreateCommand(), p.drainCommand(), p.undrainCommand(), p.deleteCommand(), p.createCommand(),
		p.statusCommand(), p.opCommand(), p.deliveriesCommand(), p.doctorCommand(), p.ciCommand(), p.configCommand(), p.tokenCommand(), p.versionCommand(),
	)
	root.InitDefaultCompletionCmd()
	checkArgs(root)
	return root
}

// checkArgs makes wrong arguments of every command a usage error that says
// where its help is.
func checkArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage(fmt.Errorf("%w (see `%s --help`)", err, cmd.CommandPath()))
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		checkArgs(child)
	}
}

// report prints an error that nobody has reported yet.
func (p *program) report(err error) {
	if err == nil {
		return
	}
	if e, ok := errors.AsType[*exit](err); ok && e.err == nil {
		return
	}
	for _, one := range apart(err) {
		text, hint := one.Error(), fleet.HintOf(one)
		if hint != "" {
			text = strings.TrimSuffix(text, " ("+hint+")")
		}
		fmt.Fprintf(p.Stderr, "sluice: %s\n", text)
		if hint != "" {
			fmt.Fprintf(p.Stderr, "  next: %s\n", hint)
		}
	}
}

// apart yields what errors.Join has joined at the top, each with its own hint.
// What is joined deeper down belongs to one sentence.
func apart(err error) []error {
	if e, ok := err.(*exit); ok { //nolint:errorlint // the outermost only
		return apart(e.err)
	}
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // the outermost only
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, apart(one)...)
	}
	return all
}

// load reads the configuration.
func (p *program) load() (*config.Config, error) {
	path, err := config.Find(p.configFile)
	if err != nil {
		return nil, usage(err)
	}
	c, err := config.Load(path)
	if err != nil {
		return nil, usage(err)
	}
	return c, nil
}
