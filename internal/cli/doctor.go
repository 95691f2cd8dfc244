package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
)

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor [FLEET]", Short: "Examine reach, units, sudo rights, identities, tokens and webhooks; change nothing",
		Long: `Doctor looks at every VM of a fleet (or of all) as an operation would before it
touches anything: can the host be reached, is the runner's unit as it must be,
does sudo allow what is needed, does GitLab know the host and nobody else, are
the tokens good, are the webhooks there that the fleet's triggers wait for.
Each finding has a code that never changes, and says what it would cause and how
to mend it; docs/reference/findings.md lists them all.

Exit status: 0 clean, 1 findings.`,
		Example: "  sluice doctor\n  sluice doctor shared --output json",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: p.completeFleets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context) error {
				s, err := p.connect(ctx, app.RoleLook, commandLine(cmd, args))
				if err != nil {
					return err
				}
				defer s.Close()
				names, err := fleetsNamed(ctx, s, args)
				if err != nil {
					return err
				}
				return p.examine(ctx, s, names)
			})
		},
	}
}

func fleetsNamed(ctx context.Context, s *session, args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	fleets, err := s.Fleets(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range fleets.Fleets {
		names = append(names, f.Name)
	}
	return names, nil
}

func (p *program) examine(ctx context.Context, s *session, names []string) error {
	var reports []*client.Report
	found := 0
	for _, name := range names {
		report, err := s.Examine(ctx, name, nil)
		if err != nil {
			return err
		}
		reports = append(reports, report)
		found += len(report.Findings)
		if !p.json() {
			p.findings(report)
		}
	}
	if p.json() {
		if err := p.printJSON(map[string]any{"reports": reports}); err != nil {
			return err
		}
	}
	if found > 0 {
		return &exit{status: ExitFailed}
	}
	return nil
}

// findings prints a report.
func (p *program) findings(report *client.Report) {
	if len(report.Findings) == 0 {
		fmt.Fprintf(p.Stdout, "%s: %s (%s examined)\n", report.Fleet, p.paint.good("clean"), countVMs(len(report.Examined)))
		for _, vm := range report.Examined { // without a finding, each of these was looked at
			fmt.Fprintf(p.Stdout, "  %s/%s: reach, unit, sudo, identity\n", report.Fleet, vm)
		}
		return
	}
	for _, f := range report.Findings {
		where := report.Fleet
		if vm := deref(f.Vm); vm != "" {
			where += "/" + vm
		}
		word := p.paint.bad(string(f.Severity))
		if f.Severity == client.FindingSeverityWarning {
			word = p.paint.alert(string(f.Severity))
		}
		fmt.Fprintf(p.Stdout, "%s  %s  %s: %s\n", where, word, f.Code, f.What)
		if would := deref(f.Would); would != "" {
			fmt.Fprintf(p.Stdout, "  would: %s\n", would)
		}
		if mend := deref(f.Mend); mend != "" {
			fmt.Fprintf(p.Stdout, "  mend:  %s\n", mend)
		}
	}
}

func countVMs(n int) string {
	if n == 1 {
		return "1 VM"
	}
	return fmt.Sprintf("%d VMs", n)
}

func hasErrors(report *client.Report) bool {
	for _, f := range report.Findings {
		if f.Severity == client.FindingSeverityError {
			return true
		}
	}
	return false
}
