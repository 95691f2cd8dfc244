package simrunner

import (
	"context"
	"net/http"
	"sync"
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// state is what the process is about to do.
type state int

const (
	running  state = iota
	graceful       // no new jobs, running ones may end
	forceful       // running ones are ended
)

// Runner is one process. Start makes it.
type Runner struct {
	o      Options
	client *http.Client

	life   context.Context // ends with the process
	end    context.CancelFunc
	polls  context.Context // ends when intake stops: cuts the open request
	closed context.CancelFunc
	force  chan struct{} // closed by SIGTERM

	mu       sync.Mutex
	state    state
	handlers bool
	jobs     int
	changed  chan struct{} // closed and replaced when state or jobs change
	once     sync.Once
}

// Start starts a process.
func Start(o Options) *Runner {
	if o.ShutdownTimeout == 0 {
		o.ShutdownTimeout = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	r := &Runner{
		o:       o,
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
		force:   make(chan struct{}),
		changed: make(chan struct{}),
	}
	r.life, r.end = context.WithCancel(context.Background())
	r.polls, r.closed = context.WithCancel(r.life)
	go r.run()
	return r
}

// Signal delivers a signal other than SIGKILL.
func (r *Runner) Signal(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.handlers && (sig == syscall.SIGQUIT || sig == syscall.SIGTERM):
		go r.exit(2)
	case sig == syscall.SIGQUIT:
		r.o.Log("[runWait] received stop signal: quit")
		if r.state == running {
			r.o.Log("Starting graceful shutdown, waiting for builds to finish")
			r.become(graceful)
		}
	case sig == syscall.SIGTERM || sig == syscall.SIGINT:
		r.o.Log("[runWait] received stop signal: terminated")
		if r.state != forceful {
			r.o.Log("Starting forceful shutdown")
			r.become(forceful)
			close(r.force)
		}
	case sig == syscall.SIGABRT:
		go r.exit(2) // a goroutine dump, and containers are left lying
	}
}

// Kill is SIGKILL: the process is gone at once, and says nothing.
func (r *Runner) Kill() {
	r.once.Do(func() {
		r.end()
		r.client.CloseIdleConnections()
	})
}

// State is what /debug/process/state would say.
func (r *Runner) State() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return [...]string{"running", "graceful-shutdown", "forceful-shutdown"}[r.state]
}

func (r *Runner) become(s state) {
	r.state = s
	r.closed()
	r.wake()
}

func (r *Runner) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// exit ends the process once, with a code.
func (r *Runner) exit(code int) {
	r.once.Do(func() {
		r.end()
		r.client.CloseIdleConnections()
		r.o.Exited(code)
	})
}

func (r *Runner) run() {
	if r.o.Concurrent == 0 {
		r.o.Log("FATAL: no jobs will be processed")
		r.exit(1)
		return
	}
	simclock.Sleep(r.life, r.o.Clock, r.o.Timing.Handlers)
	r.mu.Lock()
	r.handlers = true
	r.mu.Unlock()
	r.feed()
	r.drain()
}

// feed asks for jobs until intake stops.
func (r *Runner) feed() {
	last := ""
	for r.slot() {
		job, next, err := r.request(r.polls, last)
		if err != nil {
			r.o.Log("Checking for jobs... failed")
		}
		if next != "" {
			last = next
		}
		if job != nil {
			r.o.Log("Checking for jobs... received")
			r.count(1)
			go r.work(job)
			continue
		}
		simclock.Sleep(r.polls, r.o.Clock, r.o.Timing.Check)
	}
}

// slot waits until a job more may be taken; false: intake has stopped.
func (r *Runner) slot() bool {
	for {
		r.mu.Lock()
		state, jobs, changed := r.state, r.jobs, r.changed
		r.mu.Unlock()
		switch {
		case state != running || r.life.Err() != nil:
			return false
		case jobs < r.o.Concurrent:
			return true
		}
		select {
		case <-changed:
		case <-r.life.Done():
			return false
		}
	}
}

func (r *Runner) count(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs += n
	r.wake()
}

// drain waits for the jobs and exits; after SIGTERM only for so long.
func (r *Runner) drain() {
	limit := context.Background()
	for {
		r.mu.Lock()
		state, jobs, changed := r.state, r.jobs, r.changed
		r.mu.Unlock()
		if jobs == 0 {
			break
		}
		if state == forceful && limit == context.Background() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			defer r.o.Clock.AfterFunc(r.o.ShutdownTimeout, cancel).Stop()
			limit = ctx
		}
		select {
		case <-changed:
		case <-limit.Done():
			r.o.Log("shutdown timed out")
			r.exit(1)
			return
		case <-r.life.Done():
			return
		}
	}
	r.o.Log("All workers stopped.")
	r.o.Log("Can exit now!")
	if simclock.Sleep(r.life, r.o.Clock, r.o.Timing.Exit) {
		r.exit(0)
	}
}
