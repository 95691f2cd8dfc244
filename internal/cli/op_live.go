package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// liveNote is said of every command that changes a drain under way.
const liveNote = `
It works until the drain has a verdict, also after the cap has passed; once the
delete is committed, or jobs are being ended, it is refused (exit 4). Beside a
server the change is made and the command ends; alone it also works on the
operation to its end, as op resume does. Every change is in the journal: who,
from where, why.`

func whyFlag(cmd *cobra.Command, why *string) {
	cmd.Flags().StringVar(why, "why", "", "the `REASON`, for the journal")
}

func (p *program) opExtend() *cobra.Command {
	var by, limit, stay time.Duration
	var to, why string
	cmd := &cobra.Command{
		Use: "extend ID (--by LENGTH | --to TIME | --cap LENGTH)", Short: "Give the jobs of a drain more time",
		Long: `Extend moves the cap of an operation to a later moment. --by is counted from the
present cap, or from now where that has passed, and moves hard_cap as far; --to
and --cap move hard_cap only where it would pass before the cap.
` + liveNote,
		Example: "  sluice op extend op-0a1b --by 10m --why 'release build'\n  sluice op extend op-0a1b --to 15:30\n  sluice op extend op-0a1b --cap 30m",
		Args:    oneOperation, ValidArgsFunction: p.completeUnfinished,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf(cmd, "by", "to", "cap"); err != nil {
				return err
			}
			e, err := p.extension(by, limit, to)
			if err != nil {
				return err
			}
			body := client.ChangeBody{Extend: e}
			set(&body.Why, why)
			return p.changeDrain(cmd, args, stay, func(s *session) (*client.Operation, error) {
				return s.Change(cmd.Context(), args[0], "", body)
			})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&by, "by", 0, "later by this `LENGTH`")
	f.StringVar(&to, "to", "", "to this `TIME`: 15:30, '2026-11-30 15:30' (your time zone), or RFC 3339")
	f.DurationVar(&limit, "cap", 0, "to this `LENGTH` after intake was stopped")
	whyFlag(cmd, &why)
	lingerFlag(cmd, &stay)
	return cmd
}

// oneOf wants exactly one of several flags.
func oneOf(cmd *cobra.Command, flags ...string) error {
	given := 0
	for _, name := range flags {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	if given == 1 {
		return nil
	}
	return usage(fleet.Errorf(fleet.CodeInvalid, "%d of --%s are given", given, strings.Join(flags, ", --")).WithHint("give one of them"))
}

// extension is what the flags mean. Errors: usage.
func (p *program) extension(by, limit time.Duration, to string) (*client.ExtendBody, error) {
	if to != "" {
		at, err := readMoment(to, p.Now())
		if err != nil {
			return nil, usage(err)
		}
		return &client.ExtendBody{To: &at}, nil
	}
	if by+limit <= 0 { // only one of them is given
		return nil, usage(fleet.Errorf(fleet.CodeInvalid, "an extension by %s is none", by+limit).WithHint("give a length above zero, such as --by 10m"))
	}
	if by != 0 {
		return &client.ExtendBody{By: new(by.String())}, nil
	}
	return &client.ExtendBody{Cap: new(limit.String())}, nil
}

func (p *program) opSkipDrain() *cobra.Command {
	var yes bool
	var why string
	var stay time.Duration
	cmd := &cobra.Command{
		Use: "skip-drain ID", Short: "Go on without waiting for the jobs of a drain: they are cut",
		Long: `Skip-drain ends the waiting of a recreate or delete: running jobs are recorded
with their links, told to end and cut, and the delete goes on under a waiver
that names you. There is no way back but op cancel, until the delete is
committed. Exit 3 says that a job was cut.
` + liveNote,
		Example: "  sluice op skip-drain op-0a1b --yes --why 'the job hangs'",
		Args:    oneOperation, ValidArgsFunction: p.completeUnfinished,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.confirmSkip(yes, args[0]); err != nil {
				return err
			}
			return p.changeDrain(cmd, args, stay, func(s *session) (*client.Operation, error) {
				return s.SkipDrain(cmd.Context(), args[0], "", why)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask; needed where there is no terminal")
	whyFlag(cmd, &why)
	lingerFlag(cmd, &stay)
	return cmd
}

// confirmSkip asks a person; where none can be asked it wants --yes.
func (p *program) confirmSkip(yes bool, id string) error {
	switch {
	case yes:
		return nil
	case !terminal(p.Stdin) || !terminal(p.Stderr):
		return &exit{status: ExitRefused, err: fleet.Errorf(fleet.CodeCanceled, "not confirmed: running jobs would be cut; nothing was done").WithHint("say --yes")}
	}
	return p.confirmed(fmt.Sprintf("Skip the drain of %s? Running jobs are CUT.", id))
}

func (p *program) opSetPolicy() *cobra.Command {
	var o policyFlags
	var why string
	var stay time.Duration
	cmd := &cobra.Command{
		Use: "set-policy ID", Short: "Put a drain under another policy",
		Long: `Set-policy changes what happens at the deadlines of an operation, and the
deadlines; what is not named stays. They count from the moment intake was
stopped: a cap that has passed by that acts at once.
` + liveNote,
		Example: "  sluice op set-policy op-0a1b --on-overrun wait --hard-cap 6h\n  sluice op set-policy op-0a1b --unreachable proceed --on-unproven proceed",
		Args:    oneOperation, ValidArgsFunction: p.completeUnfinished,
		RunE: func(cmd *cobra.Command, args []string) error {
			patch, err := o.patch(cmd)
			if err != nil {
				return err
			}
			if *patch == (client.PolicyPatch{}) {
				return usage(fleet.Errorf(fleet.CodeInvalid, "nothing to change is named").
					WithHint("say --cap, --on-overrun, --hard-cap, --unreachable, --reach-deadline or --on-unproven"))
			}
			body := client.ChangeBody{Policy: patch}
			set(&body.Why, why)
			return p.changeDrain(cmd, args, stay, func(s *session) (*client.Operation, error) {
				return s.Change(cmd.Context(), args[0], "", body)
			})
		},
	}
	o.flags(cmd)
	whyFlag(cmd, &why)
	lingerFlag(cmd, &stay)
	return cmd
}

// changeDrain is change, of a drain that goes on.
func (p *program) changeDrain(cmd *cobra.Command, args []string, stay time.Duration, ask func(*session) (*client.Operation, error)) error {
	return p.changeAndShow(cmd, args, ask, false, stay, p.changed)
}

// changed prints what holds for an operation after a change.
func (p *program) changed(op *client.Operation) error {
	if p.json() {
		return p.printJSON(client.Operations{Operations: []client.Operation{*op}})
	}
	fmt.Fprintf(p.Stdout, "%s/%s  %s  %s %s\n", op.Fleet, op.Vm, op.Id, op.Kind, op.Phase)
	p.row("policy", policyText(&op.Policy))
	switch {
	case deref(op.Verdict) == string(fleet.VerdictSkipped):
		p.row("drain", "skipped")
	case op.Deadline != nil:
		p.row("cap until", p.date(*op.Deadline))
		if op.Policy.OnOverrun == string(fleet.OverrunWait) && op.HardCapAt != nil {
			p.row("hard cap", p.date(*op.HardCapAt))
		}
	}
	p.row("follow", "sluice op watch "+op.Id)
	return nil
}
