package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (p *program) demoCommand() *cobra.Command {
	var once bool
	var sabotage string
	cmd := &cobra.Command{
		Use: "demo", Short: "Recreate a small simulated fleet while it works",
		Long: `Demo starts a small world in this process: a GitLab, four VMs with an SSH server
each and busy runners, and a cloud. It recreates the VMs one by one and shows
the world's own ledger: jobs run, jobs cut. Nothing outside is touched.

--sabotage does it in a wrong way that scripts in use have, and ends non-zero
because the ledger shows the damage.`,
		Example: "  sluice demo --once\n  sluice demo --once --sabotage podman-only",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sabotage != "" && !slices.Contains(app.Sabotages(), sabotage) {
				return usage(fleet.Errorf(fleet.CodeInvalid, "--sabotage %q is not known", sabotage).WithHint("use podman-only, stop-first or by-name"))
			}
			return p.demo(cmd.Context(), once, sabotage)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "recreate each VM once, print the summary and end (else: again and again until Ctrl-C)")
	cmd.Flags().StringVar(&sabotage, "sabotage", "", "do it wrongly: `HOW` is podman-only, stop-first or by-name")
	return cmd
}

func (p *program) demo(ctx context.Context, once bool, sabotage string) error {
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	d, err := app.OpenDemo(ctx, app.DemoOptions{Sabotage: sabotage, Version: p.Version, Log: p.Stderr})
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	in, err := client.New(client.Options{Handler: d.App.Handler(), By: fleet.Actor{Name: "demo", From: "cli"}})
	if err != nil {
		return err
	}
	for {
		round, err := p.demoRound(ctx, d, &session{Client: in}, sabotage)
		if err != nil {
			return err
		}
		if err := p.ledger(ctx, d, round); err != nil || once {
			return err
		}
	}
}

// sabotageLimit is how long a wrong way is watched: what it lost may never
// come back, and the ledger has the damage by then.
const sabotageLimit = 45 * time.Second

// demoRound recreates every VM once.
func (p *program) demoRound(ctx context.Context, d *app.Demo, s *session, sabotage string) (*watcher, error) {
	asked, err := s.Ask(ctx, d.Fleet, "", client.AskBody{Kind: client.AskBodyKindRecreate, Vms: d.VMs})
	if err != nil {
		return nil, err
	}
	f := following{ops: asked.Operations, after: asked.After, firstFails: true}
	if sabotage != "" {
		f.until = p.Now().Add(sabotageLimit)
	}
	w := p.watch(s, f)
	defer w.hush()
	return w, w.untilEnded(ctx, nil)
}

// ledger judges a round by the world's own account, never by what Sluice says
// of itself.
func (p *program) ledger(ctx context.Context, d *app.Demo, w *watcher) error {
	account := d.Account(ctx)
	phases, err := w.phases(ctx)
	if err != nil {
		return err
	}
	if p.json() {
		err = p.printJSON(map[string]any{
			"replaced": account.Replaced, "vms": len(d.VMs), "jobs_run": account.JobsRun, "jobs_cut": account.JobsCut,
			"damage": account.Damage, "seconds_per_phase": seconds(phases), "operations": w.ops,
		})
	} else {
		w.summary()
		fmt.Fprintf(p.Stdout, "\nThe world's ledger: %d of %d VMs replaced, %d jobs run, %d jobs cut.\n", account.Replaced, len(d.VMs), account.JobsRun, account.JobsCut)
		for _, phase := range phases {
			fmt.Fprintf(p.Stdout, "  %-10s %6.1f s for each VM\n", phase.name, phase.each.Seconds())
		}
		for _, damage := range account.Damage {
			fmt.Fprintf(p.Stdout, "%s %s\n", p.paint.bad("damage:"), damage)
		}
	}
	if err != nil || len(account.Damage) > 0 {
		return &exit{status: ExitFailed, err: err}
	}
	if status := ending(w.ops, false); status != ExitDone {
		return &exit{status: status}
	}
	return nil
}

// spent is how long operations stayed in a phase, for each VM.
type spent struct {
	name string
	each time.Duration
}

func seconds(list []spent) map[string]float64 {
	m := map[string]float64{}
	for _, s := range list {
		m[s.name] = s.each.Round(time.Millisecond).Seconds()
	}
	return m
}

// phases sums up the journal: from one move to the next.
func (w *watcher) phases(ctx context.Context) ([]spent, error) {
	order := []string{"queued", "preflight", "draining", "deleting", "creating", "verifying"}
	total, seen := map[string]time.Duration{}, map[string]int{}
	for i := range w.ops {
		op := &w.ops[i]
		news, err := w.Events(ctx, client.ListEventsParams{Operation: &[]string{op.Id}, Limit: new(int64(1000))})
		if err != nil {
			return nil, err
		}
		phase, since := "queued", op.CreatedAt
		for _, e := range news.Events {
			if e.Kind == "phase" && deref(e.Phase) != phase {
				total[phase] += e.At.Sub(since)
				seen[phase]++
				phase, since = deref(e.Phase), e.At
			}
		}
	}
	var list []spent
	for _, name := range order {
		list = append(list, spent{name: name, each: total[name] / time.Duration(max(1, seen[name]))})
	}
	return list, nil
}
