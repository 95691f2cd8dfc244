package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
)

func (p *program) deliveriesCommand() *cobra.Command {
	var event, outcome string
	var limit int64
	cmd := &cobra.Command{
		Use: "deliveries", Short: "List what GitLab's webhooks sent, and what became of it",
		Long: `Deliveries lists the webhook deliveries that were let in, newest first: what
happened in GitLab, what it came to and why. One that is missing was not let in
(see the log of the server) or never sent (see Settings > Webhooks in GitLab).

Outcomes: pending (its work is not done yet), asked (operations were asked
for), refused (something could not be asked for), superseded (a newer event took
over), hint (a job ended, drains were told to look), ignored (no trigger
matches), unreadable (no event of GitLab).`,
		Example: "  sluice deliveries\n  sluice deliveries --outcome refused --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var params client.ListDeliveriesParams
			set(&params.Event, client.ListDeliveriesParamsEvent(event))
			set(&params.Outcome, client.ListDeliveriesParamsOutcome(outcome))
			set(&params.Limit, limit)
			return p.reading(cmd, func(ctx context.Context) error {
				s, err := p.connect(ctx, app.RoleRead, commandLine(cmd, args))
				if err != nil {
					return err
				}
				defer s.Close()
				list, err := s.Deliveries(ctx, params)
				if err != nil {
					return err
				}
				return p.deliveries(list)
			})
		},
	}
	cmd.Flags().StringVar(&event, "event", "", "only of this `KIND`: pipeline, push, tag, release, merge, job or other")
	cmd.Flags().StringVar(&outcome, "outcome", "", "only those that came to this `OUTCOME`")
	cmd.Flags().Int64Var(&limit, "limit", 50, "at most `N`")
	return cmd
}

func (p *program) deliveries(list *client.Deliveries) error {
	if p.json() {
		return p.printJSON(list)
	}
	return p.table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "DELIVERY\tRECEIVED\tEVENT\tPROJECT\tREF\tOUTCOME\tREASON")
		for i := range list.Deliveries {
			d := &list.Deliveries[i]
			outcome := string(d.Outcome)
			if n := deref(d.Repeats); n > 0 {
				outcome += fmt.Sprintf(" (came again: %d)", n)
			}
			reason := deref(d.Reason)
			if d.Operations != nil {
				reason += " (" + strings.Join(*d.Operations, ", ") + ")"
			}
			event := strings.TrimSpace(string(d.Event) + " " + deref(d.Status))
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Id, p.date(d.ReceivedAt), event,
				dash(deref(d.Path)), dash(deref(d.Ref)), outcome, reason)
		}
	})
}
