package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// defaultLimit bounds lists whose asker named no limit.
const defaultLimit = 100

// Operation loads one. Errors: CodeNotFound.
func (s *Store) Operation(ctx context.Context, id string) (*fleet.Operation, error) {
	op, err := loadOperation(ctx, s.db, id)
	return op, s.fail("loading operation "+id, err)
}

func loadOperation(ctx context.Context, q querier, id string) (*fleet.Operation, error) {
	ops, err := states[fleet.Operation](ctx, q, `select state from operations where id = ?`, id)
	if err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return nil, fleet.Errorf(fleet.CodeNotFound, "there is no operation %s", id).WithHint("list them with `sluice op list`")
	}
	return &ops[0], nil
}

// FindOperation finds by id or by a prefix that only one operation has; the
// leading "op-" may be left out. Errors: CodeNotFound, CodeConflict (several).
func (s *Store) FindOperation(ctx context.Context, prefix string) (*fleet.Operation, error) {
	if strings.TrimPrefix(prefix, "op-") == "" {
		return nil, fleet.Errorf(fleet.CodeInvalid, "no operation was named").WithHint("list them with `sluice op list`")
	}
	ops, err := states[fleet.Operation](ctx, s.db, `select state from operations
		where substr(id, 1, length(?1)) = ?1 or substr(id, 1, length(?2)) = ?2 order by id limit 6`, prefix, "op-"+prefix)
	switch {
	case err != nil:
		return nil, s.fail("finding operation "+prefix, err)
	case len(ops) == 0:
		return nil, fleet.Errorf(fleet.CodeNotFound, "there is no operation %s", prefix).WithHint("list them with `sluice op list`")
	case len(ops) == 1 || ops[0].ID == prefix:
		return &ops[0], nil
	}
	ids := make([]string, len(ops))
	for i := range ops {
		ids[i] = ops[i].ID
	}
	return nil, fleet.Errorf(fleet.CodeConflict, "several operations begin with %s: %s", prefix, strings.Join(ids, ", ")).
		WithHint("give more of the id")
}

// Operations lists newest first.
func (s *Store) Operations(ctx context.Context, f control.Filter) ([]fleet.Operation, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	ops, err := states[fleet.Operation](ctx, s.db, `select state from operations
		where (?1 = '' or fleet = ?1) and (?2 = '' or vm = ?2) and (not ?3 or finished_at is null)
		order by seq desc limit ?4`, f.Fleet, f.VM, f.Unfinished, limit)
	return ops, s.fail("listing operations", err)
}

// Unfinished lists every operation that has not ended, oldest first.
func (s *Store) Unfinished(ctx context.Context) ([]fleet.Operation, error) {
	ops, err := states[fleet.Operation](ctx, s.db, `select state from operations where finished_at is null order by seq`)
	return ops, s.fail("listing unfinished operations", err)
}

// UpdateOperation stores op, its facts, the VM (nil: unchanged) and new chores
// in one transaction, and raises op.Revision. Errors: CodeConflict if the
// stored revision is another; op is as it was then.
func (s *Store) UpdateOperation(ctx context.Context, op *fleet.Operation, facts []fleet.Fact, vm *fleet.VM, chores []fleet.Chore) error {
	err := s.write(ctx, "storing operation "+op.ID, func(tx *sql.Tx) error {
		next := *op
		next.Revision++
		if err := replaceOperation(ctx, tx, &next, op.Revision); err != nil {
			return err
		}
		if vm != nil {
			if err := saveVM(ctx, tx, vm); err != nil {
				return err
			}
		}
		for i := range chores {
			if err := insertChore(ctx, tx, &chores[i]); err != nil {
				return err
			}
		}
		return appendFacts(ctx, tx, facts)
	})
	if err != nil {
		return err
	}
	op.Revision++
	return nil
}

// replaceOperation is the compare-and-set.
func replaceOperation(ctx context.Context, tx *sql.Tx, op *fleet.Operation, was int64) error {
	state, err := json.Marshal(op)
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, `update operations set phase = ?, parallel = ?, revision = ?, finished_at = ?, state = ?
		where id = ? and revision = ?`,
		op.Phase, op.Request.Parallel, op.Revision, finishedAt(op), string(state), op.ID, was)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	if _, err := loadOperation(ctx, tx, op.ID); err != nil {
		return err
	}
	return fleet.Errorf(fleet.CodeConflict, "operation %s was moved by somebody else", op.ID).WithHint("load it again")
}

func insertOperation(ctx context.Context, tx *sql.Tx, op *fleet.Operation) error {
	state, err := json.Marshal(op)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `insert into operations (id, fleet, vm, kind, phase, parallel, revision, created_at, finished_at, state)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		op.ID, op.Fleet, op.VM, op.Kind, op.Phase, op.Request.Parallel, op.Revision, op.CreatedAt.UnixNano(), finishedAt(op), string(state))
	return err
}

// finishedAt is null exactly while the phase is not a last one: the unique
// index rests on it.
func finishedAt(op *fleet.Operation) any {
	switch {
	case !op.Phase.Finished():
		return nil
	case op.FinishedAt.IsZero():
		return op.UpdatedAt.UnixNano()
	default:
		return op.FinishedAt.UnixNano()
	}
}

// nullTime is for columns that are null until something happened.
func nullTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

// states reads rows of one column that holds the JSON of a T.
func states[T any](ctx context.Context, q querier, query string, args ...any) (list []T, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		var item T
		if err := json.Unmarshal(text, &item); err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}
