package simrunner

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// Why a part of a job ended before its time.
var (
	errCanceled    = errors.New("canceled by a user")
	errDropped     = errors.New("GitLab refuses to hear of the job")
	errInterrupted = errors.New("the runner was told to end")
	errKilled      = errors.New("the job's process was killed by a signal")
)

// build is one job at work.
type build struct {
	*payload
	r     *Runner
	trace []byte
	sent  int
	mu    sync.Mutex
	died  chan struct{} // closed when a signal killed the job's process
	code  int
}

func (r *Runner) work(p *payload) {
	defer r.count(-1)
	b := &build{payload: p, r: r, died: make(chan struct{})}
	name := fmt.Sprintf("runner-%d", p.ID)
	err := b.accept()
	if err == nil {
		r.o.Containers.Run(name, map[string]string{"com.gitlab.gitlab-runner.job.id": strconv.FormatInt(p.ID, 10)})
		end := b.fork()
		err = b.perform()
		end()
	}
	if r.life.Err() != nil {
		return // the container stays: nobody is left to remove it
	}
	b.finish(name, err)
}

// accept tells GitLab that the job has arrived, and prepares its container.
func (b *build) accept() error {
	b.say("Running with gitlab-runner 19.3.0 (sim) on " + b.r.o.SystemID)
	if err := b.report(true); err != nil {
		return err
	}
	return b.pass(b.r.o.Timing.Container)
}

// perform runs script and after_script. A cancel lets after_script run, an
// interrupt does not.
func (b *build) perform() error {
	b.say("$ " + strings.Join(b.script("script"), "; "))
	err := b.pass(b.length("SIM_DURATION"))
	for err == nil && b.r.o.Hold != nil && b.r.o.Hold() {
		err = b.pass(20 * time.Millisecond)
	}
	if err == nil {
		b.say("sim: script ended")
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, errDropped) {
		return err
	}
	if b.script("after_script") != nil {
		after := b.passAnyway(b.length("SIM_AFTER_DURATION"))
		if errors.Is(after, errInterrupted) {
			return after
		}
		b.say("sim: after_script ended")
	}
	return err
}

// finish removes the container and delivers the result, in this order: the
// container is gone before GitLab has the result.
func (b *build) finish(name string, err error) {
	t, life, clock := b.r.o.Timing, b.r.life, b.r.o.Clock
	state, reason := "success", ""
	switch {
	case errors.Is(err, errInterrupted):
		state, reason = "failed", b.known("runner_interrupted")
		simclock.Sleep(life, clock, t.Interrupt)
	default:
		if err != nil {
			state, reason = "failed", "script_failure"
		}
		simclock.Sleep(life, clock, t.Died+t.Removed)
	}
	if life.Err() != nil {
		return
	}
	b.r.o.Containers.Remove(name)
	if errors.Is(err, errDropped) {
		return
	}
	b.say("Job " + state)
	_ = b.flush() // the final update is what counts
	simclock.Sleep(life, clock, t.Result)
	b.r.final(b.payload, state, reason)
}

// pass lets time go by, reporting now and then, until d is over or the job is
// ended from outside.
func (b *build) pass(d time.Duration) error { return b.wait(d, true) }

// passAnyway does not listen to cancels: after_script runs once one came.
func (b *build) passAnyway(d time.Duration) error { return b.wait(d, false) }

func (b *build) wait(d time.Duration, cancelable bool) error {
	over := make(chan struct{})
	t := b.r.o.Clock.AfterFunc(d, func() { close(over) })
	defer t.Stop()
	for {
		tick, stop := b.tick()
		select {
		case <-over:
			stop()
			return nil
		case <-b.r.life.Done():
			stop()
			return errInterrupted
		case <-b.r.force:
			stop()
			return errInterrupted
		case <-b.died:
			stop()
			if b.interrupted() { // the whole group got the signal: the runner's word counts
				return errInterrupted
			}
			if cancelable {
				b.say(fmt.Sprintf("ERROR: Job failed: exit status %d", b.code))
				return errKilled
			}
			<-over
			return nil
		case <-tick:
			if err := b.report(false); err != nil && (cancelable || errors.Is(err, errDropped)) {
				return err
			}
		}
	}
}

func (b *build) interrupted() bool {
	select {
	case <-b.r.force:
		return true
	default:
		return false
	}
}

func (b *build) tick() (<-chan struct{}, func()) {
	c := make(chan struct{})
	t := b.r.o.Clock.AfterFunc(b.r.o.Timing.Trace, func() { close(c) })
	return c, func() { t.Stop() }
}

// report sends what there is of the trace, or a keep-alive, and hears from
// GitLab whether the job still is wanted. Outages are none of its business.
func (b *build) report(first bool) error {
	status, err := "", error(nil)
	if first || b.sent == len(b.trace) {
		status, err = b.r.update(b.r.life, b.payload, "running", "")
	}
	if err == nil && b.sent < len(b.trace) {
		status, err = b.patch()
	}
	switch {
	case errors.Is(err, errRefused) || status == "canceled" || status == "failed":
		return errDropped
	case status == "canceling":
		return errCanceled
	}
	return nil
}

func (b *build) flush() error {
	if b.sent == len(b.trace) {
		return nil
	}
	_, err := b.patch()
	return err
}

func (b *build) patch() (string, error) {
	status, has, err := b.r.patch(b.r.life, b.payload, b.sent, b.trace[b.sent:])
	switch {
	case err == nil:
		b.sent = len(b.trace)
	case has >= 0 && has <= len(b.trace): // an earlier answer was lost
		b.sent = has
	}
	return status, err
}

func (b *build) say(line string) { b.trace = append(b.trace, line+"\n"...) }

// fork registers the job's process: bash, which ignores SIGQUIT under a custom
// executor, or the job itself under the shell executor.
func (b *build) fork() func() {
	if b.r.o.Fork == nil {
		return func() {}
	}
	return b.r.o.Fork([]string{"/bin/bash", "-e", "job"}, func(sig syscall.Signal) {
		if !b.r.o.Shell && sig == syscall.SIGQUIT {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.code == 0 {
			b.code = 128 + int(sig)
			close(b.died)
		}
	})
}

func (b *build) script(step string) []string {
	for _, s := range b.Steps {
		if s.Name == step {
			return s.Script
		}
	}
	return nil
}

func (b *build) length(variable string) time.Duration {
	for _, v := range b.Variables {
		if v.Key == variable {
			if d, err := time.ParseDuration(v.Value); err == nil {
				return d
			}
		}
	}
	return 0
}

// known is the reason, or unknown_failure where the server does not list it.
func (b *build) known(reason string) string {
	if slices.Contains(b.Features.FailureReasons, reason) {
		return reason
	}
	return "unknown_failure"
}
