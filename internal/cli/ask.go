package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// linger is how long a command alone stays for what follows its operations.
const linger = 20 * time.Second

// request is what a mutating command asks for.
type request struct {
	kind     client.AskBodyKind
	image    string
	policy   policyFlags
	parallel int
	why      string
	noDrain  bool
	recreate bool
	takeOver bool
	dryRun   bool
	yes      bool
	detach   bool
	wait     bool
	leave    bool
	linger   time.Duration
}

// flags adds the flags of all mutating commands.
func (r *request) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&r.parallel, "parallel", 0, "work on `N` VMs at once (raises max_unavailable for this request)")
	f.StringVar(&r.why, "why", "", "the `REASON`, for the journal")
	f.BoolVar(&r.takeOver, "take-over", false, "take over the drop-in of another owner on the host, or a host that has obeyed orders which this journal does not know")
	f.BoolVar(&r.dryRun, "dry-run", false, "check everything and say what would be done; change nothing")
	f.BoolVar(&r.yes, "yes", false, "do not ask")
	f.BoolVar(&r.wait, "wait", true, "follow until the end")
	f.BoolVar(&r.detach, "detach", false, "do not follow (needs a server)")
	lingerFlag(cmd, &r.linger)
	f.BoolVar(&r.leave, "leave", false, "alone: Ctrl-C leaves the operation as it is instead of giving intake back")
}

// lingerFlag says how long a command alone stays for what follows.
func lingerFlag(cmd *cobra.Command, length *time.Duration) {
	cmd.Flags().DurationVar(length, "linger", linger, "alone: how long to stay for what follows, such as the watch for orphaned jobs")
}

func (r *request) imageFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.image, "image", "", "the `IMAGE` of the new VM, in the provider's words (else the fleet's own)")
}

func (r *request) body(cmd *cobra.Command, vms []string) (client.AskBody, error) {
	body := client.AskBody{Kind: r.kind, Vms: vms}
	patch, err := r.policy.patch(cmd)
	if err != nil {
		return body, err
	}
	if *patch != (client.PolicyPatch{}) {
		body.Policy = patch
	}
	set(&body.Image, r.image)
	set(&body.Why, r.why)
	set(&body.Parallel, int64(r.parallel))
	set(&body.NoDrain, r.noDrain)
	set(&body.Recreate, r.recreate)
	set(&body.TakeOver, r.takeOver)
	return body, nil
}

// set fills an optional field unless the value is its zero.
func set[T comparable](field **T, value T) {
	var zero T
	if value != zero {
		*field = &value
	}
}

// ask is every mutating command: connect, ask, follow.
func (p *program) ask(cmd *cobra.Command, args []string, r *request) error {
	ctx := cmd.Context()
	fleetName, vms, err := p.target(args)
	if err != nil {
		return err
	}
	body, err := r.body(cmd, vms)
	if err != nil {
		return err
	}
	if r.dryRun {
		return p.reading(cmd, func(ctx context.Context) error { return p.plan(ctx, cmd, fleetName, body) })
	}
	if err := p.confirm(r, args); err != nil {
		return err
	}
	s, err := p.connect(ctx, app.RoleWork, commandLine(cmd, args))
	if err != nil {
		return err
	}
	defer s.Close()
	if r.detach && s.alone() {
		return usage(fleet.Errorf(fleet.CodeInvalid, "--detach needs a server to go on").WithHint("start `sluice serve`, or leave --detach out"))
	}
	if s.alone() {
		if err := p.leftovers(ctx, s, ""); err != nil {
			return err
		}
	}
	idle := r.kind == client.AskBodyKindDrain && s.alone() && drainedAlready(ctx, s, fleetName, vms)
	asked, err := s.Ask(ctx, fleetName, "", body)
	if err != nil {
		return err
	}
	p.notice(ctx, s, fleetName)
	if r.detach || !r.wait {
		return p.detached(asked.Operations)
	}
	return p.follow(ctx, s, following{ops: asked.Operations, after: asked.After, leave: r.leave, linger: r.linger, drainedNothing: idle})
}

// drainedAlready says whether a drain of VMs has nothing to drain, and so left
// no job of its own to look for.
func drainedAlready(ctx context.Context, s *session, fleetName string, vms []string) bool {
	list, err := s.VMs(ctx, fleetName)
	if err != nil {
		return false // asking says what is wrong
	}
	for _, vm := range list.Vms {
		if slices.Contains(vms, vm.Vm) && vm.State != "drained" {
			return false
		}
	}
	return true
}

// notice says what cannot be seen for want of a token.
func (p *program) notice(ctx context.Context, s *session, fleetName string) {
	fleets, err := s.Fleets(ctx)
	if err != nil {
		return // the operation is what counts
	}
	for _, f := range fleets.Fleets {
		if f.Name == fleetName && f.Blind != nil {
			fmt.Fprintf(p.Stderr, "sluice: fleet %s: %s\n", fleetName, *f.Blind)
		}
	}
}

func (p *program) detached(ops []client.Operation) error {
	if p.json() {
		return p.printJSON(client.Operations{Operations: ops})
	}
	for _, op := range ops {
		fmt.Fprintf(p.Stdout, "%s/%s  %s  %s: follow with `sluice op watch %s`\n", op.Fleet, op.Vm, op.Id, op.Kind, op.Id)
	}
	return nil
}

// confirm asks a person at a terminal before something that cannot be undone.
func (p *program) confirm(r *request, args []string) error {
	if r.yes || r.kind != client.AskBodyKindDelete || !terminal(p.Stdin) || !terminal(p.Stderr) {
		return nil
	}
	how := "after a drain"
	if r.noDrain {
		how = "WITHOUT a drain: running jobs are cut"
	}
	return p.confirmed(fmt.Sprintf("Delete %s %s?", strings.Join(args, ", "), how))
}

// confirmed asks the person at the terminal.
func (p *program) confirmed(question string) error {
	fmt.Fprintf(p.Stderr, "%s [y/N] ", question)
	line, _ := bufio.NewReader(p.Stdin).ReadString('\n') // end of input is a no
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
		return nil
	}
	return &exit{status: ExitRefused, err: fleet.Errorf(fleet.CodeCanceled, "not confirmed: nothing was done")}
}

// commandLine names the command for whoever is refused because of it.
func commandLine(cmd *cobra.Command, args []string) string {
	return strings.Join(append([]string{cmd.CommandPath()}, args...), " ")
}
