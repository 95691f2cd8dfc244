package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// How many deliveries are kept. Those that came to nothing are for people to
// look at: the newest of each kind suffice. The others tell repeats apart.
const (
	keepDeliveries = 30 * 24 * time.Hour
	keepIgnored    = 10000
	keepHints      = 1000
	pruneEvery     = 100 // deliveries
)

// ReceiveDelivery stores a delivery with all of its work in one transaction,
// unless its key or its digest is known: then that one is yielded, with one
// repeat more, and nothing else changes. Nil = it was new, or the known one came
// to nothing and this one, which gets its id, has work: a trigger was added, and
// a person sent the event again.
func (s *Store) ReceiveDelivery(ctx context.Context, d *fleet.Delivery) (first *fleet.Delivery, err error) {
	err = s.write(ctx, "storing delivery "+d.ID, func(tx *sql.Tx) error {
		known, err := states[fleet.Delivery](ctx, tx,
			`select state from deliveries where digest = ?1 or key = nullif(?2, '') order by seq limit 1`, d.Digest, d.Key)
		if err != nil {
			return err
		}
		switch {
		case len(known) == 0:
			return newDelivery(ctx, tx, d)
		case len(d.Tasks) > 0 && cameToNothing(&known[0]):
			return reviveDelivery(ctx, tx, d, &known[0])
		}
		first = &known[0]
		first.Repeats++
		first.RepeatedAt = d.At
		return replaceDelivery(ctx, tx, first)
	})
	if err != nil {
		return nil, err
	}
	return first, nil
}

func cameToNothing(d *fleet.Delivery) bool {
	return d.Outcome == fleet.DeliveryIgnored || d.Outcome == fleet.DeliveryUnreadable
}

func newDelivery(ctx context.Context, tx *sql.Tx, d *fleet.Delivery) error {
	seq, err := insertDelivery(ctx, tx, d)
	if err != nil {
		return err
	}
	if err := enterLanes(ctx, tx, d); err != nil || seq%pruneEvery != 0 {
		return err
	}
	return pruneDeliveries(ctx, tx, seq, d.At)
}

func reviveDelivery(ctx context.Context, tx *sql.Tx, d, known *fleet.Delivery) error {
	d.ID, d.Repeats, d.RepeatedAt, d.Revision = known.ID, known.Repeats+1, d.At, known.Revision
	if err := enterLanes(ctx, tx, d); err != nil {
		return err
	}
	return replaceDelivery(ctx, tx, d)
}

func insertDelivery(ctx context.Context, tx *sql.Tx, d *fleet.Delivery) (seq int64, err error) {
	state, err := json.Marshal(d)
	if err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, `insert into deliveries (id, key, digest, event, project, outcome, received_at, revision, finished_at, state)
		values (?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?) returning seq`,
		d.ID, d.Key, d.Digest, d.Event, d.Project, d.Outcome, d.At.UnixNano(), d.Revision, nullTime(d.FinishedAt), string(state)).Scan(&seq)
	return seq, err
}

// enterLanes makes the delivery the one that counts, if it is of a higher rank
// than what did, or of the same and that one came to nothing.
func enterLanes(ctx context.Context, tx *sql.Tx, d *fleet.Delivery) error {
	for i := range d.Tasks {
		t := &d.Tasks[i]
		if _, err := tx.ExecContext(ctx, `insert into delivery_lanes (lane, rank, delivery) values (?1, ?2, ?3)
			on conflict (lane) do update set rank = ?2, delivery = ?3 where rank < ?2 or (rank = ?2 and
			exists (select 1 from deliveries d where d.id = delivery_lanes.delivery and d.outcome = ?4))`,
			t.Lane, t.Rank, d.ID, fleet.DeliveryRefused); err != nil {
			return err
		}
	}
	return nil
}

// pruneDeliveries forgets what nobody needs. Pending ones stay.
func pruneDeliveries(ctx context.Context, tx *sql.Tx, newest int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `delete from deliveries where finished_at is not null and (
		received_at < ?1 or (outcome in (?2, ?3) and seq <= ?4) or (outcome = ?5 and seq <= ?6))`,
		at.Add(-keepDeliveries).UnixNano(), fleet.DeliveryIgnored, fleet.DeliveryUnreadable, newest-keepIgnored,
		fleet.DeliveryHint, newest-keepHints)
	return err
}

// Delivery loads one. Errors: CodeNotFound.
func (s *Store) Delivery(ctx context.Context, id string) (*fleet.Delivery, error) {
	list, err := states[fleet.Delivery](ctx, s.db, `select state from deliveries where id = ?`, id)
	if err == nil && len(list) == 0 {
		err = fleet.Errorf(fleet.CodeNotFound, "there is no delivery %s", id).WithHint("list them with `sluice deliveries`")
	}
	if err != nil {
		return nil, s.fail("loading delivery "+id, err)
	}
	return &list[0], nil
}

// Deliveries lists newest first.
func (s *Store) Deliveries(ctx context.Context, f fleet.DeliveryFilter) ([]fleet.Delivery, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	list, err := states[fleet.Delivery](ctx, s.db, `select state from deliveries
		where (?1 = '' or event = ?1) and (?2 = '' or outcome = ?2) order by seq desc limit ?3`, f.Event, f.Outcome, limit)
	return list, s.fail("listing deliveries", err)
}

// PendingDeliveries lists the ids of deliveries with work left, oldest first.
func (s *Store) PendingDeliveries(ctx context.Context) (ids []string, err error) {
	rows, err := s.db.QueryContext(ctx, `select id from deliveries where finished_at is null order by seq`)
	if err != nil {
		return nil, s.fail("listing pending deliveries", err)
	}
	defer func() { err = s.fail("listing pending deliveries", errors.Join(err, rows.Close())) }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// UpdateDelivery stores d and raises its Revision. Errors: CodeConflict if the
// stored revision is another; d is as it was then.
func (s *Store) UpdateDelivery(ctx context.Context, d *fleet.Delivery) error {
	next := *d
	if err := s.write(ctx, "storing delivery "+d.ID, func(tx *sql.Tx) error { return replaceDelivery(ctx, tx, &next) }); err != nil {
		return err
	}
	d.Revision = next.Revision
	return nil
}

func replaceDelivery(ctx context.Context, tx *sql.Tx, d *fleet.Delivery) error {
	next := *d
	next.Revision++
	state, err := json.Marshal(next)
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, `update deliveries set outcome = ?, revision = ?, finished_at = ?, state = ? where id = ? and revision = ?`,
		next.Outcome, next.Revision, nullTime(next.FinishedAt), string(state), d.ID, d.Revision)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil {
		return err
	} else if n != 1 {
		return fleet.Errorf(fleet.CodeConflict, "delivery %s was moved by somebody else, or is not there", d.ID).WithHint("load it again")
	}
	d.Revision++
	return nil
}

// NewestInLane yields the delivery that counts in a lane; "" = none.
func (s *Store) NewestInLane(ctx context.Context, lane string) (string, error) {
	var id string
	err := s.db.QueryRowContext(ctx, `select delivery from delivery_lanes where lane = ?`, lane).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, s.fail("reading a lane of deliveries", err)
}

// LastDelivery is when a project's webhook was last heard; zero = never, or
// too long ago to be kept.
func (s *Store) LastDelivery(ctx context.Context, project int64) (time.Time, error) {
	var at sql.NullInt64
	err := s.db.QueryRowContext(ctx, `select max(received_at) from deliveries where project = ?`, project).Scan(&at)
	if err != nil || !at.Valid {
		return time.Time{}, s.fail("reading the last delivery", err)
	}
	return time.Unix(0, at.Int64).UTC(), nil
}
