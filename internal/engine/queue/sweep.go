package queue

import (
	"context"

	"github.com/riverqueue/river"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

type sweepWorker struct {
	river.WorkerDefaults[sweepArgs]
	queue *Queue
}

// Work adds the wake-ups that were lost and lets the engine look after what no
// operation works on. A failure waits for the next sweep.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	q := w.queue
	jobs, err := q.unfinished(ctx)
	if err == nil {
		_, err = q.insert(ctx, jobs, false)
	}
	if err == nil && q.Only == nil {
		err = q.Looker.Sweep(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		q.Log.WarnContext(ctx, "the sweep failed; it is repeated", "error", err, "in", sweepInterval)
	}
	return nil
}

// wakeAll has everything unfinished looked at now.
func (q *Queue) wakeAll(ctx context.Context) error {
	jobs, err := q.unfinished(ctx)
	if err != nil {
		return err
	}
	if _, err := q.insert(ctx, jobs, true); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "what is unfinished was not woken: %w", err).
			WithHint("check the disk that holds the journal")
	}
	return nil
}

// unfinished yields a job for everything that has to be looked at.
func (q *Queue) unfinished(ctx context.Context) ([]river.InsertManyParams, error) {
	ops, err := q.Source.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	chores, err := q.Source.UnfinishedChores(ctx)
	if err != nil {
		return nil, err
	}
	deliveries, err := q.Source.PendingDeliveries(ctx)
	if err != nil {
		return nil, err
	}
	jobs := make([]river.InsertManyParams, 0, len(ops)+len(chores)+len(deliveries))
	for i := range ops {
		if q.Only == nil || q.Only(ops[i].ID) {
			jobs = append(jobs, river.InsertManyParams{Args: operationArgs{Operation: ops[i].ID}})
		}
	}
	for i := range chores {
		if q.Only == nil || q.Only(chores[i].Operation) {
			if q.Only != nil {
				q.desk.adopt(subject{"chore", chores[i].ID})
			}
			jobs = append(jobs, river.InsertManyParams{Args: choreArgs{Chore: chores[i].ID}})
		}
	}
	for _, id := range deliveries {
		if q.Deliveries != nil {
			jobs = append(jobs, river.InsertManyParams{Args: deliveryArgs{Delivery: id}})
		}
	}
	return jobs, nil
}
