package ci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/outcome"
)

// Options are what a job is made of.
type Options struct {
	Order    Order
	Place    Place
	Server   string // the controller's URL
	Token    string // the id_token
	Detach   bool   // end as soon as the request is accepted
	Reports  string // directory
	Patience time.Duration
	Out      io.Writer
	Colour   bool
	Sections bool // GitLab's section markers
	Signals  <-chan os.Signal
	Now      func() time.Time
}

// job is one run.
type job struct {
	Options
	log      *joblog
	progress *progress
	patience *patience
	ops      []client.Operation
	after    int64                  // events up to here were printed
	date     atomic.Pointer[string] // the Date of the controller's last answer
}

// errInterrupted is why a job's context ends when GitLab cancels the job.
var errInterrupted = errors.New("the job was canceled")

// Run asks for the VMs, follows, reports, and yields the exit status
// (package outcome). Everything it has to say is in the log. It never cancels
// an operation: what was accepted goes on whatever becomes of the job.
func Run(ctx context.Context, o Options) int {
	log := &joblog{out: o.Out, now: o.Now, colour: o.Colour, sections: o.Sections}
	j := &job{Options: o, log: log, progress: newProgress(log)}
	j.patience = &patience{limit: o.Patience, now: o.Now, log: log, spread: o.Place.Key(o.Order)}
	if err := j.check(); err != nil {
		return j.refused(err)
	}
	if err := j.report(unasked(o.Server, o.Order, StateNotAsked, []string{"the job ended before the controller had answered"})); err != nil {
		j.problem("no reports", err)
		return outcome.Usage
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-ctx.Done():
		case <-o.Signals:
			stop(errInterrupted)
		}
	}()
	return j.run(ctx)
}

// check refuses what is wrong before anybody is asked. Errors: CodeInvalid.
func (j *job) check() error {
	if missing := j.Place.missing(); missing != "" {
		return fleet.Errorf(fleet.CodeInvalid, "this is no GitLab job: %s not set", missing).
			WithHint("outside of a pipeline use `sluice recreate FLEET/VM... --server URL`")
	}
	if j.Server == "" {
		return fleet.Errorf(fleet.CodeInvalid, "no controller was named").WithHint("set the component's input `controller` (or --server)")
	}
	if j.Token == "" {
		return fleet.Errorf(fleet.CodeInvalid, "SLUICE_ID_TOKEN is empty: nothing says who asks").
			WithHint("give the job id_tokens: {SLUICE_ID_TOKEN: {aud: …}}, as the component does; it needs GitLab 15.7 or later")
	}
	if _, err := j.connect(""); err != nil {
		j.Server = "(no URL)" // it may hold a password
		return err
	}
	return j.Order.check()
}

func (j *job) run(ctx context.Context) int {
	body, err := j.Order.body(why(j.Place))
	if err != nil {
		return j.refused(err)
	}
	asked, err := j.ask(ctx, body)
	if err != nil {
		return j.unaccepted(ctx, err)
	}
	j.ops, j.after = asked.Operations, asked.After
	j.accepted()
	if err := j.report(reported(j.Server, j.Order.Fleet, j.ops, []string{"the job ended before the operation did"})); err != nil {
		j.problem("a report is missing", err)
	}
	if j.Detach {
		j.log.line("mode detach: the controller goes on; this job does not wait.")
		return j.handedOver()
	}
	if asked.SelfDrain != nil && !j.selfDrain(asked.SelfDrain) {
		return j.handedOver()
	}
	if err := j.follow(ctx, asked); err != nil {
		return j.lost(ctx, err)
	}
	return j.ended(asked.SelfDrain != nil)
}

// why tells the journal where the request comes from.
func why(p Place) string {
	if p.URL == "" {
		return "GitLab job " + p.Job + " of pipeline " + p.Pipeline
	}
	return "GitLab job " + p.URL
}

// ask sends the one request for all VMs, patiently. Repeats carry the same
// Idempotency-Key: they begin nothing twice.
func (j *job) ask(ctx context.Context, body client.AskBody) (*client.Asked, error) {
	controller, err := j.connect(j.Token)
	if err != nil {
		return nil, err
	}
	j.log.line("sluice: asks " + clean(j.Server) + " to recreate " + list(j.Order.Fleet, j.Order.VMs))
	if plaintext(j.Server) {
		j.log.line(j.log.alert("WARNING") + ": " + clean(j.Server) + " is not https: whoever listens on the way can use this job's token")
	}
	var asked *client.Asked
	err = j.patience.try(ctx, false, func() error {
		asked, err = controller.Ask(ctx, j.Order.Fleet, j.Place.Key(j.Order), body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return asked, whole(asked, j.Order)
}

// connect makes the client of the controller, with a bearer token.
func (j *job) connect(token string) (*client.Client, error) {
	return client.New(client.Options{URL: j.Server, Token: token, Answered: func(r *http.Response) {
		date := r.Header.Get("Date")
		j.date.Store(&date)
	}})
}

// whole checks that an answer is about what was asked, and puts its operations
// into the order asked for. Errors: CodeInternal.
func whole(asked *client.Asked, o Order) error {
	strange := func(what string) error {
		return fleet.Errorf(fleet.CodeInternal, "the controller's answer is not about what was asked: %s", what).
			WithHint("look at the controller: `sluice op list`; is this image as new as the controller?")
	}
	byVM := map[string]client.Operation{}
	for _, op := range asked.Operations {
		if op.Id == "" {
			return strange("an operation without an id")
		}
		byVM[op.Vm] = op
	}
	sorted := make([]client.Operation, len(o.VMs))
	for i, vm := range o.VMs {
		op, ok := byVM[vm]
		if !ok {
			return strange("no operation on " + vm)
		}
		sorted[i] = op
	}
	if len(asked.Operations) != len(o.VMs) {
		return strange(fmt.Sprintf("%d operations for %d VMs", len(asked.Operations), len(o.VMs)))
	}
	asked.Operations = sorted
	return nil
}

func (j *job) report(r Report) error { return r.write(j.Reports) }
