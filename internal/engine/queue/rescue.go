package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// takeOver makes what a killed process was working on available at once, and
// ends its leadership. Without it River waits for rescueAfter and for the end
// of the lease. It is safe because the engine lock lets only one process work.
//
// The package riverdriver is outside River's compatibility promise: it is used
// in this file only, and a test that kills a process watches over it.
func (q *Queue) takeOver(ctx context.Context) error {
	executor := q.client.Driver().GetExecutor()
	horizon := q.Clock.Now().Add(time.Minute) // whatever the clock did meanwhile
	err := errors.Join(rescue(ctx, executor, q.Clock.Now(), horizon), resign(ctx, executor))
	if err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the work of an earlier process was not taken over: %w", err).
			WithHint("check the disk that holds the journal")
	}
	return nil
}

func rescue(ctx context.Context, executor riverdriver.Executor, now, horizon time.Time) error {
	stuck, err := executor.JobGetStuck(ctx, &riverdriver.JobGetStuckParams{Max: 1 << 20, StuckHorizon: horizon})
	if err != nil || len(stuck) == 0 {
		return err
	}
	params := &riverdriver.JobRescueManyParams{StuckHorizon: horizon}
	for _, job := range stuck {
		note, err := json.Marshal(rivertype.AttemptError{At: now, Attempt: job.Attempt, Error: "the process ended"})
		if err != nil {
			return err
		}
		params.ID = append(params.ID, job.ID)
		params.Error = append(params.Error, note)
		params.FinalizedAt = append(params.FinalizedAt, nil)
		params.ScheduledAt = append(params.ScheduledAt, now)
		params.State = append(params.State, string(rivertype.JobStateAvailable))
	}
	_, err = executor.JobRescueMany(ctx, params)
	return err
}

func resign(ctx context.Context, executor riverdriver.Executor) error {
	leader, err := executor.LeaderGetElectedLeader(ctx, &riverdriver.LeaderGetElectedLeaderParams{})
	if errors.Is(err, rivertype.ErrNotFound) || errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = executor.LeaderResign(ctx, &riverdriver.LeaderResignParams{ElectedAt: leader.ElectedAt, LeaderID: leader.LeaderID})
	return err
}
