package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Chore loads one. Errors: CodeNotFound.
func (s *Store) Chore(ctx context.Context, id string) (*fleet.Chore, error) {
	list, err := states[fleet.Chore](ctx, s.db, `select state from chores where id = ?`, id)
	if err == nil && len(list) == 0 {
		err = fleet.Errorf(fleet.CodeNotFound, "there is no chore %s", id)
	}
	if err != nil {
		return nil, s.fail("loading chore "+id, err)
	}
	return &list[0], nil
}

// Chores lists an operation's chores, finished ones too, in the order they were added.
func (s *Store) Chores(ctx context.Context, operation string) ([]fleet.Chore, error) {
	list, err := states[fleet.Chore](ctx, s.db, `select state from chores where operation = ? order by seq`, operation)
	return list, s.fail("listing the chores of "+operation, err)
}

// UnfinishedChores lists every chore that has not ended, oldest first.
func (s *Store) UnfinishedChores(ctx context.Context) ([]fleet.Chore, error) {
	list, err := states[fleet.Chore](ctx, s.db, `select state from chores where finished_at is null order by seq`)
	return list, s.fail("listing unfinished chores", err)
}

// UpdateChore stores c with its facts and raises its Revision. Errors:
// CodeConflict if the stored revision is another; c is as it was then.
func (s *Store) UpdateChore(ctx context.Context, c *fleet.Chore, facts []fleet.Fact) error {
	next := *c
	next.Revision++
	state, err := json.Marshal(next)
	if err != nil {
		return s.fail("storing chore "+c.ID, err)
	}
	err = s.write(ctx, "storing chore "+c.ID, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `update chores set revision = ?, finished_at = ?, state = ? where id = ? and revision = ?`,
			next.Revision, nullTime(c.FinishedAt), string(state), c.ID, c.Revision)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil {
			return err
		} else if n != 1 {
			return fleet.Errorf(fleet.CodeConflict, "chore %s was moved by somebody else, or is not there", c.ID).WithHint("load it again")
		}
		return appendFacts(ctx, tx, facts)
	})
	if err != nil {
		return err
	}
	c.Revision++
	return nil
}

// insertChore adds a chore unless it is there: a step that runs twice names the
// same ones.
func insertChore(ctx context.Context, tx *sql.Tx, c *fleet.Chore) error {
	state, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `insert into chores (id, operation, revision, finished_at, state) values (?, ?, ?, ?, ?)
		on conflict (id) do nothing`,
		c.ID, c.Operation, c.Revision, nullTime(c.FinishedAt), string(state))
	return err
}
