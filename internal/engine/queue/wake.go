package queue

import (
	"context"
	"database/sql"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Between our books and River's there is a gap: a job that River calls running
// may not have begun, or may have ended a moment ago. It closes within a batch
// of River's (50 ms).
const (
	gapTries = 80
	gapPause = 25 * time.Millisecond
)

// Wake has an operation looked at now: within milliseconds if an attempt is
// running, else within a fetch (0.1 s). It may be repeated. Errors:
// CodeUnavailable; the sweep heals a wake-up that was lost.
func (q *Queue) Wake(ctx context.Context, operation string) error {
	return q.wake(ctx, subject{"operation", operation}, operationArgs{Operation: operation})
}

// WakeChore does the same for a chore.
func (q *Queue) WakeChore(ctx context.Context, chore string) error {
	about := subject{"chore", chore}
	if q.Only != nil {
		q.desk.adopt(about)
	}
	return q.wake(ctx, about, choreArgs{Chore: chore})
}

// WakeDelivery does the same for a webhook delivery.
func (q *Queue) WakeDelivery(ctx context.Context, delivery string) error {
	return q.wake(ctx, subject{"delivery", delivery}, deliveryArgs{Delivery: delivery})
}

func (q *Queue) wake(ctx context.Context, about subject, args river.JobArgs) error {
	for range gapTries {
		if q.desk.poke(about) {
			return nil
		}
		running, err := q.insert(ctx, []river.InsertManyParams{{Args: args}}, true)
		if err != nil {
			return fleet.Errorf(fleet.CodeUnavailable, "%s %s was not woken: %w", about.kind, about.id, err).
				WithHint("it is looked at within %s", sweepInterval)
		}
		if !running || !q.started.Load() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fleet.Errorf(fleet.CodeCanceled, "%s %s was not woken: %w", about.kind, about.id, ctx.Err())
		case <-time.After(gapPause):
		}
	}
	return fleet.Errorf(fleet.CodeUnavailable, "%s %s was not woken: an attempt of another process has not ended", about.kind, about.id).
		WithHint("it is taken over within %s", rescueAfter+sweepInterval)
}

// insert adds jobs, one live one for each subject. With hurry, jobs that were
// resting are due at once; running says that one of them is being worked.
func (q *Queue) insert(ctx context.Context, jobs []river.InsertManyParams, hurry bool) (running bool, err error) {
	if len(jobs) == 0 {
		return false, nil
	}
	tx, err := q.DB.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the first error is the one to tell
		}
	}()
	results, err := q.client.InsertManyTx(ctx, tx, jobs)
	if err != nil {
		return false, err
	}
	if hurry {
		if running, err = q.hurry(ctx, tx, results); err != nil {
			return false, err
		}
	}
	return running, tx.Commit()
}

func (q *Queue) hurry(ctx context.Context, tx *sql.Tx, results []*rivertype.JobInsertResult) (running bool, err error) {
	for _, result := range results {
		if !result.UniqueSkippedAsDuplicate {
			continue
		}
		job, err := q.client.JobRetryTx(ctx, tx, result.Job.ID)
		if err != nil {
			return false, err
		}
		running = running || job.State == rivertype.JobStateRunning
	}
	return running, nil
}
