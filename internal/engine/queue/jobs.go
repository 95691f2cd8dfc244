package queue

import (
	"context"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// notOurs is for how long another command's job is put aside in alone mode.
// The next start takes it up whatever is left of it.
const notOurs = time.Hour

// operationArgs is the job "look at this operation".
type operationArgs struct {
	Operation string `json:"op_id"`
}

// Kind names the job. It is stored: it must never change.
func (operationArgs) Kind() string { return "vm_operation" }

// InsertOpts makes the job the only live one of its operation.
func (operationArgs) InsertOpts() river.InsertOpts { return oneLive() }

// choreArgs is the job "look at this chore".
type choreArgs struct {
	Chore string `json:"chore_id"`
}

// Kind names the job. It is stored: it must never change.
func (choreArgs) Kind() string { return "vm_chore" }

// InsertOpts makes the job the only live one of its chore.
func (choreArgs) InsertOpts() river.InsertOpts { return oneLive() }

// deliveryArgs is the job "look at this webhook delivery".
type deliveryArgs struct {
	Delivery string `json:"delivery_id"`
}

// Kind names the job. It is stored: it must never change.
func (deliveryArgs) Kind() string { return "webhook_delivery" }

// InsertOpts makes the job the only live one of its delivery.
func (deliveryArgs) InsertOpts() river.InsertOpts { return oneLive() }

// sweepArgs is the job "look whether a wake-up was lost".
type sweepArgs struct{}

// Kind names the job. It is stored: it must never change.
func (sweepArgs) Kind() string { return "sweep" }

// InsertOpts makes the job the only live one of its kind.
func (sweepArgs) InsertOpts() river.InsertOpts { return oneLive() }

// oneLive leaves out the completed, cancelled and discarded jobs that River's
// default counts: they would block the next wake-up until they are cleaned up.
func oneLive() river.InsertOpts {
	return river.InsertOpts{
		MaxAttempts: maxAttempts,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled,
		}},
	}
}

type operationWorker struct {
	river.WorkerDefaults[operationArgs]
	queue *Queue
}

// Work is one attempt at an operation.
func (w *operationWorker) Work(ctx context.Context, job *river.Job[operationArgs]) error {
	id := job.Args.Operation
	if w.queue.Only != nil && !w.queue.Only(id) {
		return river.JobSnooze(notOurs)
	}
	return w.queue.attempt(ctx, subject{"operation", id}, w.queue.Looker.Look)
}

type choreWorker struct {
	river.WorkerDefaults[choreArgs]
	queue *Queue
}

// Work is one attempt at a chore.
func (w *choreWorker) Work(ctx context.Context, job *river.Job[choreArgs]) error {
	about := subject{"chore", job.Args.Chore}
	if w.queue.Only != nil && !w.queue.desk.isOurs(about) {
		return river.JobSnooze(notOurs)
	}
	return w.queue.attempt(ctx, about, w.queue.Looker.LookChore)
}

type deliveryWorker struct {
	river.WorkerDefaults[deliveryArgs]
	queue *Queue
}

// Work is one attempt at a delivery. A command alone works none: they are the
// server's.
func (w *deliveryWorker) Work(ctx context.Context, job *river.Job[deliveryArgs]) error {
	if w.queue.Deliveries == nil {
		return river.JobSnooze(notOurs)
	}
	return w.queue.attempt(ctx, subject{"delivery", job.Args.Delivery}, w.queue.Deliveries.LookDelivery)
}

// soon retries what was cut off in the middle: by a panic of River's own, or
// by the rescue of an attempt that did not end.
type soon struct{ clock Clock }

// NextRetry yields the time of the next attempt.
func (s soon) NextRetry(*rivertype.JobRow) time.Time { return s.clock.Now().Add(firstPause) }
