package queue

import "context"

// SweepNow runs a sweep without waiting for its time.
func (q *Queue) SweepNow(ctx context.Context) error {
	return (&sweepWorker{queue: q}).Work(ctx, nil)
}
