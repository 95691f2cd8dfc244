package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// keyLife is how long an idempotency key is kept.
const keyLife = 7 * 24 * time.Hour

// given is what an idempotency key remembers of one result.
type given struct {
	Operation string `json:"operation"`
	New       bool   `json:"new"`
}

// Insert stores operations that nobody has begun, with the key and a FactAsked
// for each, in one transaction. A VM's unfinished operation is yielded instead
// of a second one. If accept refuses (asked before the commit; it must not
// call the store), nothing at all is stored. A key that was used before yields
// the operations it yielded then, as they are now; those of them that ended
// badly are asked for anew if the key comes from another job.
//
// Errors: CodeConflict if the key came with another body; whatever accept says.
func (s *Store) Insert(ctx context.Context, ops []fleet.Operation, key control.Key, accept func([]control.Inserted) error) ([]control.Inserted, error) {
	var results []control.Inserted
	err := s.write(ctx, "storing what was asked", func(tx *sql.Tx) error {
		repeated, anew, err := s.repeat(ctx, tx, key)
		if err != nil || repeated != nil && !anew {
			results = repeated
			return err
		}
		for i := range ops {
			if before := well(repeated, ops[i].VM); before != nil {
				results = append(results, *before)
				continue
			}
			got, err := insertOne(ctx, tx, ops[i])
			if err != nil {
				return err
			}
			results = append(results, got)
		}
		if accept != nil {
			if err := accept(results); err != nil {
				return err
			}
		}
		for i := range results {
			if err := giveWay(ctx, tx, &results[i], ops[i]); err != nil {
				return err
			}
			if err := s.join(ctx, tx, &results[i], ops[i].Request.By); err != nil {
				return err
			}
		}
		return s.remember(ctx, tx, key, results)
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// giveWay ends the operation in the way, if accept said so, and inserts the
// new one in its place.
func giveWay(ctx context.Context, tx *sql.Tx, got *control.Inserted, op fleet.Operation) error {
	if got.Ended == nil {
		return nil
	}
	ended := *got.Ended
	before := ended.Revision
	ended.Revision++
	if err := replaceOperation(ctx, tx, &ended, before); err != nil {
		return err
	}
	fact := fleet.Fact{
		At: ended.UpdatedAt, Operation: ended.ID, Fleet: ended.Fleet, VM: ended.VM,
		Kind: fleet.FactPhase, Phase: ended.Phase, Text: fmt.Sprintf("%s: superseded by %s", ended.Phase, op.ID),
	}
	if err := appendFacts(ctx, tx, []fleet.Fact{fact}); err != nil {
		return err
	}
	fresh, err := insertOne(ctx, tx, op)
	*got = fresh
	return err
}

func insertOne(ctx context.Context, tx *sql.Tx, op fleet.Operation) (control.Inserted, error) {
	present, err := states[fleet.Operation](ctx, tx,
		`select state from operations where fleet = ? and vm = ? and finished_at is null`, op.Fleet, op.VM)
	if err != nil {
		return control.Inserted{}, err
	}
	if len(present) > 0 {
		return control.Inserted{Operation: present[0]}, nil
	}
	if err := insertOperation(ctx, tx, &op); err != nil {
		return control.Inserted{}, err
	}
	return control.Inserted{Operation: op, New: true}, appendFacts(ctx, tx, []fleet.Fact{asked(op)})
}

// asked is the fact that says who wanted the operation, from where, and why.
func asked(op fleet.Operation) fleet.Fact {
	return fleet.Fact{
		At: op.CreatedAt, Operation: op.ID, Fleet: op.Fleet, VM: op.VM,
		Kind: fleet.FactAsked, Phase: op.Phase, Text: fmt.Sprintf("%s was asked for by %s", op.Kind, op.Request.By.Words()),
	}
}

// repeat yields what the key yielded before, nil if it is new, and whether
// some of it is to be asked for anew.
func (s *Store) repeat(ctx context.Context, tx *sql.Tx, key control.Key) (results []control.Inserted, anew bool, err error) {
	if key.Value == "" {
		return nil, false, nil
	}
	var digest, answer string
	var job int64
	err = tx.QueryRowContext(ctx, `select digest, answer, job from idempotency_keys where key = ? and created_at > ?`,
		key.Scope+key.Value, s.clock.Now().Add(-keyLife).UnixNano()).Scan(&digest, &answer, &job)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case digest != key.Digest:
		return nil, false, fleet.Errorf(fleet.CodeConflict, "the Idempotency-Key %q was used for another request", key.Value).
			WithHint("make a new key for a new request; keys are kept for 7 days")
	}
	var before []given
	if err := json.Unmarshal([]byte(answer), &before); err != nil {
		return nil, false, err
	}
	results = make([]control.Inserted, len(before))
	for i, b := range before {
		op, err := loadOperation(ctx, tx, b.Operation)
		if err != nil {
			return nil, false, err
		}
		results[i] = control.Inserted{Operation: *op, New: b.New}
		anew = anew || job != key.Job && endedBadly(op)
	}
	return results, anew, nil
}

func endedBadly(op *fleet.Operation) bool {
	return op.Phase.Finished() && op.Phase != fleet.PhaseSucceeded
}

// well yields the earlier result for a VM that is under way or went well.
func well(results []control.Inserted, vm string) *control.Inserted {
	for i := range results {
		if op := &results[i].Operation; op.VM == vm && !endedBadly(op) {
			return &control.Inserted{Operation: *op, Kept: true}
		}
	}
	return nil
}

func (s *Store) remember(ctx context.Context, tx *sql.Tx, key control.Key, results []control.Inserted) error {
	if key.Value == "" {
		return nil
	}
	now := s.clock.Now()
	if _, err := tx.ExecContext(ctx, `delete from idempotency_keys where created_at <= ?`, now.Add(-keyLife).UnixNano()); err != nil {
		return err
	}
	list := make([]given, len(results))
	for i, r := range results {
		list[i] = given{Operation: r.Operation.ID, New: r.New}
	}
	answer, err := json.Marshal(list)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `insert into idempotency_keys (key, digest, answer, created_at, job) values (?, ?, ?, ?, ?)
		on conflict (key) do update set answer = excluded.answer, created_at = excluded.created_at, job = excluded.job`,
		key.Scope+key.Value, key.Digest, string(answer), now.UnixNano(), key.Job)
	return err
}
