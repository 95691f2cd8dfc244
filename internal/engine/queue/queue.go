package queue

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Tunables. The reasons are in facts/durable-engine.md.
const (
	// lookLimit ends one look. The engine's own limit is shorter.
	lookLimit = 30 * time.Second
	// stay is for how long an attempt may look again, on a wake-up or after a
	// short wait, before it gives its place back.
	stay = 15 * time.Second
	// shortWait is the longest wait that an attempt sits out in its place: going
	// through the queue would cost up to a poll interval.
	shortWait = time.Second
	// leastWait keeps a look that asks for none from spinning.
	leastWait = 10 * time.Millisecond
	// attemptLimit ends an attempt, rescueAfter takes over one that does not end.
	attemptLimit = stay + lookLimit
	rescueAfter  = attemptLimit + 10*time.Second

	fetchCooldown = 50 * time.Millisecond
	// insertQuiet is for how long River lets an insert trigger no fetch after
	// another one did. A fetch may have passed meanwhile: such an insert would
	// wait for the next poll.
	insertQuiet   = time.Millisecond
	pollInterval  = time.Second
	sweepInterval = 30 * time.Second
	maxWorkers    = 4096  // a waiting operation holds no place
	maxAttempts   = 32000 // only crashes use attempts up
	keepFinished  = time.Hour

	// clientID is the same in every process: the engine lock lets only one live.
	clientID = "sluice"
)

// Looker is the engine, as far as the queue asks it.
type Looker interface {
	// Look brings an operation forward until it waits. wait says when to look
	// again, done that nobody needs to.
	Look(ctx context.Context, operation string) (wait time.Duration, done bool, err error)
	// LookChore does the same for a chore.
	LookChore(ctx context.Context, chore string) (wait time.Duration, done bool, err error)
	// Sweep looks after what no operation works on.
	Sweep(ctx context.Context) error
}

// DeliveryLooker does the work of webhook deliveries.
type DeliveryLooker interface {
	// LookDelivery is to a delivery what Look is to an operation.
	LookDelivery(ctx context.Context, delivery string) (wait time.Duration, done bool, err error)
}

// Source lists what has to be looked at.
type Source interface {
	Unfinished(ctx context.Context) ([]fleet.Operation, error)
	UnfinishedChores(ctx context.Context) ([]fleet.Chore, error)
	PendingDeliveries(ctx context.Context) ([]string, error)
}

// Clock tells the time.
type Clock interface {
	Now() time.Time
}

// Options are what a Queue is made of. Looker may be set after New, before
// Start: the engine wants a waker, too.
type Options struct {
	DB     *sql.DB // the store's own SQLite file
	Source Source
	Looker Looker
	// Deliveries may be set like Looker; nil = deliveries stand still.
	Deliveries DeliveryLooker
	Clock      Clock
	Log        *slog.Logger
	// Only says which operations to work, with their chores; nil = all, and the
	// engine's own sweep too. Whoever gives it works alone, beside unfinished
	// operations of others that stay as they are.
	Only func(operation string) bool
}

// Queue wakes the engine for operations and chores.
type Queue struct {
	Options
	client  *river.Client[*sql.Tx]
	desk    *desk
	started atomic.Bool
}

// New brings the queue's tables up to date and makes a queue that stands
// still. Wake works from now on; work begins with Start.
func New(ctx context.Context, o Options) (*Queue, error) {
	q := &Queue{Options: o, desk: newDesk()}
	driver := riversqlite.New(o.DB)
	log := slog.New(quiet{o.Log.Handler()})
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: log})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "the queue's tables cannot be brought up to date: %w", err).
			WithHint("check the disk that holds the journal")
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &operationWorker{queue: q})
	river.AddWorker(workers, &choreWorker{queue: q})
	river.AddWorker(workers, &deliveryWorker{queue: q})
	river.AddWorker(workers, &sweepWorker{queue: q})
	q.client, err = river.NewClient(driver, &river.Config{
		ID:                          clientID,
		Logger:                      log,
		Workers:                     workers,
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: maxWorkers, FetchCooldown: fetchCooldown}},
		JobTimeout:                  attemptLimit,
		RescueStuckJobsAfter:        rescueAfter,
		RetryPolicy:                 soon{o.Clock},
		MaxAttempts:                 maxAttempts,
		FetchCooldown:               insertQuiet,
		FetchPollInterval:           pollInterval,
		FetchOnlyKnownKinds:         true,
		CompletedJobRetentionPeriod: keepFinished,
		CancelledJobRetentionPeriod: keepFinished,
		DiscardedJobRetentionPeriod: keepFinished,
		ReindexerIndexNames:         []string{}, // the tables stay small
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(
			river.PeriodicInterval(sweepInterval),
			func() (river.JobArgs, *river.InsertOpts) { return sweepArgs{}, nil },
			&river.PeriodicJobOpts{RunOnStart: true},
		)},
	})
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInternal, "the queue is set up wrongly: %w", err)
	}
	return q, nil
}

// Start takes over what an earlier process left, looks at everything
// unfinished at once, and goes on until Stop. ctx bounds only the start. The
// caller holds the engine lock.
func (q *Queue) Start(ctx context.Context) error {
	if err := q.takeOver(ctx); err != nil {
		return err
	}
	if err := q.wakeAll(ctx); err != nil {
		return err
	}
	// River takes the end of this context for a stop of its own kind, which
	// would count as a failure of whatever runs.
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the queue does not start: %w", err).
			WithHint("check the disk that holds the journal")
	}
	q.started.Store(true)
	return nil
}

// Stop ends the contexts of running looks and waits for them, at most until
// ctx ends. What they had not done is done after the next start.
func (q *Queue) Stop(ctx context.Context) error {
	if !q.started.CompareAndSwap(true, false) {
		return nil
	}
	if err := q.client.StopAndCancel(ctx); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the queue did not stop in time: %w", err).
			WithHint("nothing is lost: what is unfinished goes on after the next start")
	}
	return nil
}
