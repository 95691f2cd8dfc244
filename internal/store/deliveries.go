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

// sameEvent is how far apart two webhooks' deliveries of one event may come.
const sameEvent = 10 * time.Minute

// receiveOne stores one delivery, see [Store.ReceiveDelivery].
func receiveOne(ctx context.Context, tx *sql.Tx, d *fleet.Delivery) (first *fleet.Delivery, err error) {
	first, err = knownDelivery(ctx, tx, d)
	switch {
	case err != nil:
		return nil, err
	case first == nil:
		return nil, newDelivery(ctx, tx, d)
	case len(d.Tasks) > 0 && cameToNothing(first):
		return nil, reviveDelivery(ctx, tx, d, first)
	}
	first.Repeats++
	first.RepeatedAt = d.At
	if err := replaceDelivery(ctx, tx, first); err != nil {
		return nil, err
	}
	return first, rememberKey(ctx, tx, d.Key, first.ID)
}

// knownDelivery yields the one that d repeats; nil = it is new. Where both have
// a key, the key decides: a project may come to the same state again, with the
// very same body. The body decides where one has none, as of GitLab before 17.4,
// and where two webhooks send the same event.
func knownDelivery(ctx context.Context, tx *sql.Tx, d *fleet.Delivery) (*fleet.Delivery, error) {
	known, err := states[fleet.Delivery](ctx, tx,
		`select state from deliveries where id = (select delivery from delivery_keys where key = ?)`, d.Key)
	if err == nil && len(known) == 0 {
		known, err = states[fleet.Delivery](ctx, tx, `select state from deliveries where digest = ? order by seq desc limit 1`, d.Digest)
		if err == nil && len(known) == 1 && d.Key != "" && known[0].Key != "" {
			same, err := isSameEvent(ctx, tx, &known[0], d)
			if err != nil || !same {
				return nil, err
			}
		}
	}
	if err != nil || len(known) == 0 {
		return nil, err
	}
	return &known[0], nil
}

// isSameEvent says whether d, with the body of first, came from another webhook
// for the same event: soon, and with no other event in between that counts.
func isSameEvent(ctx context.Context, tx *sql.Tx, first, d *fleet.Delivery) (bool, error) {
	if d.At.Sub(first.At).Abs() > sameEvent {
		return false, nil
	}
	for i := range d.Tasks {
		t := &d.Tasks[i]
		if t.Outcome != fleet.DeliveryPending || cameToNothing(first) {
			continue
		}
		var counts bool
		err := tx.QueryRowContext(ctx, `select exists (select 1 from delivery_lanes where lane = ? and delivery = ?)`, t.Lane, first.ID).Scan(&counts)
		if err != nil || !counts {
			return false, err
		}
	}
	return true, nil
}

// rememberKey has a delivery known by one more key, if there is one.
func rememberKey(ctx context.Context, tx *sql.Tx, key, id string) error {
	if key == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, `insert into delivery_keys (key, delivery) values (?, ?) on conflict (key) do nothing`, key, id)
	return err
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
	if err := replaceDelivery(ctx, tx, d); err != nil {
		return err
	}
	return rememberKey(ctx, tx, d.Key, d.ID)
}

func insertDelivery(ctx context.Context, tx *sql.Tx, d *fleet.Delivery) (seq int64, err error) {
	state, err := json.Marshal(d)
	if err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, `insert into deliveries (id, digest, event, project, outcome, received_at, revision, finished_at, state)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning seq`,
		d.ID, d.Digest, d.Event, d.Project, d.Outcome, d.At.UnixNano(), d.Revision, nullTime(d.FinishedAt), string(state)).Scan(&seq)
	if err != nil {
		return 0, err
	}
	return seq, rememberKey(ctx, tx, d.Key, d.ID)
}

// enterLanes makes the delivery the one that counts, if its pending tasks are of
// a newer state than what did. One that is refused on receipt takes nobody's place.
func enterLanes(ctx context.Context, tx *sql.Tx, d *fleet.Delivery) error {
	for i := range d.Tasks {
		if t := &d.Tasks[i]; t.Outcome == fleet.DeliveryPending {
			if err := enterLane(ctx, tx, d, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// enterLane compares by rank; the same rank is the same thing, and counts once
// more only if it came to nothing. Without a rank it compares by GitLab's clock,
// and whatever that leaves open goes by arrival, which is the order of these
// transactions: the same second, no time at all, or a time that is still to
// come, which says nothing. Our clock orders nothing: it may be set back.
func enterLane(ctx context.Context, tx *sql.Tx, d *fleet.Delivery, t *fleet.DeliveryTask) error {
	var moment int64
	if !t.Moment.IsZero() {
		moment = t.Moment.Unix()
	}
	_, err := tx.ExecContext(ctx, `insert into delivery_lanes (lane, rank, moment, delivery) values (?1, ?2, ?3, ?4)
		on conflict (lane) do update set rank = ?2, moment = ?3, delivery = ?4 where case when ?2 > 0
		then rank < ?2 or (rank = ?2 and exists (select 1 from deliveries d where d.id = delivery_lanes.delivery and d.outcome = ?5))
		else ?3 = 0 or moment <= ?3 or moment > ?6 end`,
		t.Lane, t.Rank, moment, d.ID, fleet.DeliveryRefused, d.At.Unix())
	return err
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
