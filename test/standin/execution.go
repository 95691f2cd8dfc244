package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// Times of the real runner (facts measured on 19.3, and its defaults).
const (
	traceInterval  = 3 * time.Second        // a patch, if there is something new
	aliveInterval  = 29 * time.Second       // a sign of life from a silent job
	finalTries     = 10                     // job_status_final_update_retry_limit
	finalPause     = time.Second            // doubled after each try
	quickTries     = 5                      // repeats inside one try
	quickPause     = 100 * time.Millisecond // between those
	cleanupTimeout = 20 * time.Second
)

// errCanceled and errGone are why GitLab's word ends a job's script: canceled with
// after_script still to run, or over without us.
var (
	errCanceled = errors.New("canceled")
	errGone     = errors.New("job is over at GitLab")
)

// execution is one job on its way.
type execution struct {
	gitlab *coordinator
	job    *job
	box    box
	trace  trace
	log    *slog.Logger
}

func newExecution(c *coordinator, j *job, e entry, log *slog.Logger) *execution {
	return &execution{gitlab: c, job: j, box: newBox(e, j), log: log.With("job", j.ID)}
}

// run works the job from its beginning to its delivered result. When ctx is canceled the
// job fails at once as interrupted, without after_script. The box is gone before the
// result is sent, as with the real one.
func (x *execution) run(ctx context.Context) {
	outcome := x.work(ctx)
	x.cleanUp(context.WithoutCancel(ctx))
	if outcome.State == "" {
		x.log.Warn("Job ended by GitLab")
		return
	}
	x.log.Info("Job finished", "state", outcome.State, "reason", outcome.FailureReason)
	x.deliver(context.WithoutCancel(ctx), outcome)
}

// cleanUp removes the box; a busy host may need another try.
func (x *execution) cleanUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	for {
		err := x.box.remove(ctx)
		if err == nil {
			return
		}
		x.log.Warn("cleanup failed", "error", err)
		if !pause(ctx, time.Second) {
			return
		}
	}
}

// work runs the steps; an outcome without a state means that GitLab wants none.
func (x *execution) work(ctx context.Context) result {
	_, _ = fmt.Fprintf(&x.trace, "Running with gitlab-runner %s on %s\n", version, x.gitlab.systemID)
	scripts, endScripts := context.WithCancelCause(ctx)
	defer endScripts(nil)
	// The reports go on through after_script, so they end with the job and not its script.
	reports, endReports := context.WithCancel(ctx)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		x.report(reports, endScripts)
	}()
	defer func() {
		endReports()
		<-reported
	}()

	if err := x.box.start(scripts, &x.trace); err != nil {
		return x.verdict(ctx, scripts, err, true)
	}
	err := x.steps(scripts, func(s step) bool { return s.Name != "after_script" })
	after := x.steps(ctx, func(s step) bool {
		return s.Name == "after_script" && !errors.Is(context.Cause(scripts), errGone)
	})
	if after != nil {
		_, _ = fmt.Fprintf(&x.trace, "WARNING: after_script failed: %v\n", after)
	}
	return x.verdict(ctx, scripts, err, false)
}

func (x *execution) steps(ctx context.Context, wanted func(step) bool) error {
	for _, s := range x.job.Steps {
		if !wanted(s) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := x.box.run(ctx, strings.Join(s.Script, "\n")+"\n", &x.trace); err != nil {
			return err
		}
	}
	return nil
}

// verdict turns the end of the script into what GitLab is told.
func (x *execution) verdict(ctx, scripts context.Context, err error, system bool) result {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return result{State: "failed", FailureReason: "runner_interrupted"}
	}
	switch cause := context.Cause(scripts); {
	case errors.Is(cause, errGone):
		return result{}
	case errors.Is(cause, errCanceled):
		return result{State: "failed", FailureReason: "job_canceled"}
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		_, _ = fmt.Fprintln(&x.trace, "Job succeeded")
		return result{State: "success"}
	case system || !errors.As(err, &exit):
		_, _ = fmt.Fprintf(&x.trace, "ERROR: Job failed (system failure): %v\n", err)
		return result{State: "failed", FailureReason: "runner_system_failure"}
	default:
		_, _ = fmt.Fprintf(&x.trace, "ERROR: Job failed: %v\n", err)
		return result{State: "failed", FailureReason: "script_failure", ExitCode: exit.ExitCode()}
	}
}

// report sends the trace as it grows and signs of life where it doesn't, and listens for
// a cancel in the answers.
func (x *execution) report(ctx context.Context, end context.CancelCauseFunc) {
	last := time.Now()
	for pause(ctx, traceInterval) {
		var a answer
		var err error
		switch {
		case x.trace.pending():
			a, err = x.trace.flush(ctx, x.gitlab, x.job)
		case time.Since(last) >= aliveInterval:
			a, err = x.gitlab.update(ctx, x.job, result{State: "running"})
		default:
			continue
		}
		last = time.Now()
		switch {
		case err != nil:
			x.log.Warn("Updating job... failed", "error", err)
		case a.JobStatus == "canceling":
			end(errCanceled)
		case a.jobEnded():
			end(errGone)
		}
	}
}

// deliver sends the rest of the trace and the result until GitLab has taken them, it
// says that it wants neither, or every try is used up: about 17 minutes.
func (x *execution) deliver(ctx context.Context, outcome result) {
	wait := finalPause
	for try := range finalTries {
		if try > 0 {
			pause(ctx, wait)
			wait *= 2
		}
		for range quickTries {
			if x.deliverOnce(ctx, outcome) {
				return
			}
			pause(ctx, quickPause)
		}
	}
	x.log.Error("Updating job... giving up", "state", outcome.State)
}

// deliverOnce says whether there is nothing left to try.
func (x *execution) deliverOnce(ctx context.Context, outcome result) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if x.trace.pending() {
		a, err := x.trace.flush(ctx, x.gitlab, x.job)
		switch {
		case err != nil, a.Code >= http.StatusInternalServerError:
			return false
		case a.Code == http.StatusRequestedRangeNotSatisfiable && x.trace.pending():
			return false // now it is known from where to send
		}
	}
	a, err := x.gitlab.update(ctx, x.job, outcome)
	switch {
	case err != nil:
		x.log.Warn("Updating job... failed", "error", err)
	case a.Code == http.StatusOK:
		x.log.Info("Updating job... accepted", "state", outcome.State)
		return true
	case a.jobEnded():
		x.log.Warn("Updating job... refused", "code", a.Code, "job_status", a.JobStatus)
		return true
	default:
		x.log.Warn("Updating job... failed", "code", a.Code)
	}
	return false
}
