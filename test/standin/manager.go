package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// manager is one runner process: its entries share the slots of `concurrent`.
type manager struct {
	config   config
	systemID string
	log      *slog.Logger
	slots    chan struct{}
	jobs     sync.WaitGroup
}

func newManager(c config, systemID string, log *slog.Logger) *manager {
	return &manager{config: c, systemID: systemID, log: log, slots: make(chan struct{}, c.Concurrent)}
}

// start polls for every entry until polling ends. Jobs go on until they are done or
// working is canceled; the channel closes when no poll and no job is left.
func (m *manager) start(polling, working context.Context) <-chan struct{} {
	var polls sync.WaitGroup
	for _, e := range m.config.Runners {
		polls.Go(func() { m.poll(polling, working, e) })
	}
	done := make(chan struct{})
	go func() {
		<-polling.Done()
		polls.Wait()
		m.jobs.Wait()
		close(done)
	}()
	return done
}

// poll asks for jobs whenever a slot is free.
func (m *manager) poll(polling, working context.Context, e entry) {
	// A client without a timeout of its own: long polls end by the server or by ctx.
	c := &coordinator{
		url: e.URL, token: e.Token, systemID: m.systemID, executor: e.Executor,
		client: &http.Client{Transport: &http.Transport{}},
	}
	for {
		select {
		case <-polling.Done():
			return
		case m.slots <- struct{}{}:
		}
		assigned, err := c.requestJob(polling)
		if assigned != nil {
			m.jobs.Go(func() {
				defer func() { <-m.slots }()
				m.log.Info("Checking for jobs... received", "job", assigned.ID)
				newExecution(c, assigned, e, m.log).run(working)
			})
			continue // there may be more
		}
		<-m.slots
		if err != nil && !errors.Is(err, context.Canceled) {
			m.log.Warn("Checking for jobs... failed", "error", err)
		}
		pause(polling, m.config.CheckInterval)
	}
}

// pause waits for d, or less if ctx ends; it says whether the whole of d has passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
