package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Admit moves a queued operation to its next phase if the fleet's budget has
// room for its VM, in one transaction with the count. op is stored as given,
// with the new phase; if it has to wait, nothing is stored and why says for
// whom. Errors: CodeConflict if the row was moved by somebody else.
//
// The rules:
//   - An operation whose own VM is not serving already costs nothing, nor does
//     one that drains nothing: it is admitted at once and holds no place.
//   - Other VMs that are not serving count, each once: those with an unfinished
//     operation past queued, and those members whose row says so.
//   - The line is first come, first served. Room is kept for those who asked
//     earlier; one whose own budget is smaller and used up holds up the line.
func (s *Store) Admit(ctx context.Context, op *fleet.Operation, next fleet.Phase, budget fleet.Budget, at time.Time) (ok bool, why string, err error) {
	// Most looks find no room. They need not hold up the writers: what counts is
	// counted again in the transaction.
	if why, err = s.mustWait(ctx, s.db, op, budget); err != nil || why != "" {
		return false, why, s.fail("admitting operation "+op.ID, err)
	}
	admitted := *op
	err = s.write(ctx, "admitting operation "+op.ID, func(tx *sql.Tx) error {
		stored, err := loadOperation(ctx, tx, op.ID)
		if err != nil {
			return err
		}
		if stored.Revision != op.Revision || stored.Phase != fleet.PhaseQueued {
			return fleet.Errorf(fleet.CodeConflict, "operation %s was moved by somebody else", op.ID).WithHint("load it again")
		}
		if why, err = s.mustWait(ctx, tx, op, budget); err != nil || why != "" {
			return err
		}
		admitted.Phase, admitted.PhaseSince, admitted.UpdatedAt = next, at, at
		admitted.Revision++
		return replaceOperation(ctx, tx, &admitted, op.Revision)
	})
	if err != nil || why != "" {
		return false, why, err
	}
	*op = admitted
	return true, "", nil
}

// mustWait says for whom op has to wait; "" = it does not.
func (s *Store) mustWait(ctx context.Context, q querier, op *fleet.Operation, budget fleet.Budget) (string, error) {
	free, err := costsNothing(ctx, q, op)
	if err != nil || free {
		return "", err
	}
	out, err := notServing(ctx, q, op, budget.Members)
	if err != nil {
		return "", err
	}
	if len(out) >= budget.Room {
		stuck, err := nobodyWorks(ctx, q, op)
		return budget.Full(op.Fleet, len(out), some(out), stuck), err
	}
	return s.behind(ctx, q, op, budget.Room-len(out))
}

// nobodyWorks says that op is the first in its fleet's line and that nothing is
// at work: nobody but a person will free the budget. Those behind it wait for it.
func nobodyWorks(ctx context.Context, q querier, op *fleet.Operation) (stuck bool, err error) {
	err = q.QueryRowContext(ctx, `
		select not exists (select 1 from operations where fleet = ?1 and finished_at is null and phase <> 'queued')
		and not exists (select 1 from operations where fleet = ?1 and finished_at is null and phase = 'queued'
			and seq < (select seq from operations where id = ?2))`, op.Fleet, op.ID).Scan(&stuck)
	return stuck, err
}

func costsNothing(ctx context.Context, q querier, op *fleet.Operation) (bool, error) {
	if !op.Kind.Drains() {
		return true, nil
	}
	var serving bool
	err := q.QueryRowContext(ctx, `select serving from vms where fleet = ? and vm = ?`, op.Fleet, op.VM).Scan(&serving)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return !serving, err
}

// notServing names the fleet's other VMs that are not serving. Of members nil,
// every row counts.
func notServing(ctx context.Context, q querier, op *fleet.Operation, members []string) (names []string, err error) {
	list, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	rows, err := q.QueryContext(ctx, `
		select vm from operations where fleet = ?1 and vm <> ?2 and finished_at is null and phase <> 'queued'
		union select vm from vms where fleet = ?1 and vm <> ?2 and not serving
		and (?3 = 'null' or vm in (select value from json_each(?3)))
		order by vm`, op.Fleet, op.VM, string(list))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// behind says who asked earlier and uses up the room that is left, or whose
// own budget may be used up already.
func (s *Store) behind(ctx context.Context, q querier, op *fleet.Operation, room int) (why string, err error) {
	rows, err := q.QueryContext(ctx, `
		select o.id, o.vm, o.parallel from operations o left join vms v on v.fleet = o.fleet and v.vm = o.vm
		where o.fleet = ?1 and o.finished_at is null and o.phase = 'queued' and o.kind not in (?3, ?4)
		and o.seq < (select seq from operations where id = ?2) and coalesce(v.serving, 1)
		order by o.seq`, op.Fleet, op.ID, fleet.KindUndrain, fleet.KindCreate)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, vm string
		var parallel int
		if err := rows.Scan(&id, &vm, &parallel); err != nil {
			return "", err
		}
		if !s.works(id) {
			continue
		}
		if room--; room <= 0 || parallel < op.Request.Parallel {
			return fmt.Sprintf("%s (%s/%s) was asked for earlier and goes first", id, op.Fleet, vm), nil
		}
	}
	return "", rows.Err()
}

// some lists up to four names.
func some(names []string) string {
	const shown = 4
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
