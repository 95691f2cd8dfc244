package cli

import (
	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

// What each mode needs, for the help of the commands that change something.
const (
	needsDrain = `
Credentials:
  gitlab.token (scope read_api)  to see jobs and prove that the VM is idle
  fleet.runner.token (glrt-…)    to remove the old manager and prove the token
                                 (registration: fleet)
  One of them is enough: without gitlab.token host evidence alone decides, and a
  line says what cannot be seen; with neither the command is refused.
  gitlab.write_token (scope api) optional: to run jobs again that were lost in the
                                 instant of the stop and, with registration:
                                 individual, to remove the old VM's entry
  fleet.host.key                 to stop intake over SSH
`
	needsServer = `
With --server, or when ` + "`sluice serve`" + ` answers on its socket, the server holds
all of these; the command needs only $SLUICE_TOKEN (TCP) or the right to open
the socket. Alone, Ctrl-C gives intake back as long as the delete is not
committed; beside a server it only stops following.`
)

func (p *program) recreateCommand() *cobra.Command {
	r := &request{kind: client.AskBodyKindRecreate}
	cmd := &cobra.Command{
		Use: "recreate FLEET/VM...", Short: "Drain, delete and create VMs anew",
		Long: `Recreate stops a VM's intake, waits until its jobs have ended (at most the
cap), deletes it, creates it anew and waits until it serves. Several VMs go one
after another, as max_unavailable allows.
` + needsDrain + `  the provider's own             to delete and create
` + needsServer,
		Example: `  sluice recreate shared/runner-01
  sluice recreate shared/runner-01 shared/runner-02 --parallel 2 --image fedora-43
  sluice recreate shared/runner-01 --cap 30m --on-overrun abort`,
		Args: someVMs, ValidArgsFunction: p.completeVMs,
		RunE: func(cmd *cobra.Command, args []string) error { return p.ask(cmd, args, r) },
	}
	r.flags(cmd)
	r.imageFlag(cmd)
	r.policy.flags(cmd)
	return cmd
}

func (p *program) drainCommand() *cobra.Command {
	r := &request{kind: client.AskBodyKindDrain}
	cmd := &cobra.Command{
		Use: "drain FLEET/VM...", Short: "Stop a VM's intake and wait until its jobs have ended",
		Long: `Drain stops a VM's intake and waits until its jobs have ended (at most the
cap). The VM stays drained, over reboots too, until undrain, recreate or create.
` + needsDrain + needsServer,
		Example: "  sluice drain shared/runner-01\n  sluice drain shared/runner-01 --cap 2h --on-overrun abort",
		Args:    someVMs, ValidArgsFunction: p.completeVMs,
		RunE: func(cmd *cobra.Command, args []string) error { return p.ask(cmd, args, r) },
	}
	r.flags(cmd)
	r.policy.flags(cmd)
	return cmd
}

func (p *program) undrainCommand() *cobra.Command {
	r := &request{kind: client.AskBodyKindUndrain}
	cmd := &cobra.Command{
		Use: "undrain FLEET/VM...", Short: "Open a drained VM's intake again",
		Long: `Undrain starts the runner again. A job that still runs is not touched: intake
opens when it has ended.
` + needsServer,
		Example: "  sluice undrain shared/runner-01",
		Args:    someVMs, ValidArgsFunction: p.completeVMs,
		RunE: func(cmd *cobra.Command, args []string) error { return p.ask(cmd, args, r) },
	}
	r.flags(cmd)
	return cmd
}

func (p *program) deleteCommand() *cobra.Command {
	r := &request{kind: client.AskBodyKindDelete}
	cmd := &cobra.Command{
		Use: "delete FLEET/VM...", Short: "Drain a VM and delete it",
		Long: `Delete drains a VM as drain does, then deletes it and waits until nothing of
it is left. --no-drain skips the drain: running jobs are cut and counted.
` + needsDrain + `  the provider's own             to delete
With --no-drain neither token is needed.
` + needsServer,
		Example: "  sluice delete shared/runner-01\n  sluice delete shared/runner-01 --no-drain --yes",
		Args:    someVMs, ValidArgsFunction: p.completeVMs,
		RunE: func(cmd *cobra.Command, args []string) error { return p.ask(cmd, args, r) },
	}
	r.flags(cmd)
	r.policy.flags(cmd)
	cmd.Flags().BoolVar(&r.noDrain, "no-drain", false, "do not wait for jobs: what runs is cut")
	return cmd
}

func (p *program) createCommand() *cobra.Command {
	r := &request{kind: client.AskBodyKindCreate}
	cmd := &cobra.Command{
		Use: "create FLEET/VM...", Short: "Create a VM",
		Long: `Create makes a VM that does not exist and waits until it serves. It refuses
an existing one; with --recreate it drains, deletes and creates it anew, and
needs no more credentials than create does.

Credentials:
  the provider's own             to create (with --recreate: to delete too)
  fleet.host.key                 to see over SSH that the runner serves
  gitlab.token or runner.token   to see its manager online, or the token alive
` + needsServer,
		Example: "  sluice create shared/runner-05 --image fedora-43\n  sluice create shared/runner-05 --recreate",
		Args:    someVMs, ValidArgsFunction: p.completeVMs,
		RunE: func(cmd *cobra.Command, args []string) error { return p.ask(cmd, args, r) },
	}
	r.flags(cmd)
	r.imageFlag(cmd)
	r.policy.flags(cmd)
	cmd.Flags().BoolVar(&r.recreate, "recreate", false, "replace the VM if it exists")
	return cmd
}
