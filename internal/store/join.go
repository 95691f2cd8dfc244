package store

import (
	"context"
	"database/sql"
	"fmt"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// join notes who attaches to an operation, if accept said so: in the journal,
// the same words once, and on the operation itself while it is queued, because
// then it may still be told to give way.
func (s *Store) join(ctx context.Context, tx *sql.Tx, got *control.Inserted, by fleet.Actor) error {
	if !got.Joined {
		return nil
	}
	op := &got.Operation
	fact := fleet.Fact{
		At: s.clock.Now(), Operation: op.ID, Fleet: op.Fleet, VM: op.VM,
		Kind: fleet.FactAsked, Phase: op.Phase, Text: fmt.Sprintf("%s was asked for by %s too", op.Kind, by.Words()),
	}
	known, err := said(ctx, tx, fact)
	if err != nil || known {
		return err
	}
	if op.Phase == fleet.PhaseQueued && by.From != control.FromWebhook {
		before := op.Revision
		op.Joined, op.UpdatedAt = by, fact.At
		op.Revision++
		if err := replaceOperation(ctx, tx, op, before); err != nil {
			return err
		}
	}
	return appendFacts(ctx, tx, []fleet.Fact{fact})
}

// said says whether the journal has a fact's words about its operation already.
func said(ctx context.Context, tx *sql.Tx, fact fleet.Fact) (known bool, err error) {
	err = tx.QueryRowContext(ctx, `select exists (select 1 from facts where operation = ? and json_extract(state, '$.text') = ?)`,
		fact.Operation, fact.Text).Scan(&known)
	return known, err
}
