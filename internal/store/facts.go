package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// AppendFacts stores facts that go with no other change.
func (s *Store) AppendFacts(ctx context.Context, facts []fleet.Fact) error {
	if len(facts) == 0 {
		return nil
	}
	return s.write(ctx, "storing facts", func(tx *sql.Tx) error { return appendFacts(ctx, tx, facts) })
}

func appendFacts(ctx context.Context, tx *sql.Tx, facts []fleet.Fact) error {
	for _, fact := range facts {
		fact.ID = 0
		state, err := json.Marshal(fact)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `insert into facts (operation, state) values (?, ?)`, fact.Operation, string(state)); err != nil {
			return err
		}
	}
	return nil
}

// Facts lists the event log after an id, oldest first; operation "" = all.
// A limit of 0 is 100.
func (s *Store) Facts(ctx context.Context, after int64, operation string, limit int) (list []fleet.Fact, err error) {
	if limit <= 0 {
		limit = defaultLimit
	}
	query, args := `select id, state from facts where id > ? order by id limit ?`, []any{after, limit}
	if operation != "" {
		query, args = `select id, state from facts where operation = ? and id > ? order by id limit ?`, []any{operation, after, limit}
	}
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.fail("listing facts", err)
	}
	defer func() { err = s.fail("listing facts", errors.Join(err, rows.Close())) }()
	for rows.Next() {
		var id int64
		var text []byte
		if err := rows.Scan(&id, &text); err != nil {
			return nil, err
		}
		var fact fleet.Fact
		if err := json.Unmarshal(text, &fact); err != nil {
			return nil, err
		}
		fact.ID = id
		list = append(list, fact)
	}
	return list, rows.Err()
}

// LastFact is the id of the newest entry of the event log; 0 = it is empty.
func (s *Store) LastFact(ctx context.Context) (id int64, err error) {
	err = s.db.QueryRowContext(ctx, `select coalesce(max(id), 0) from facts`).Scan(&id)
	return id, s.fail("reading the event log", err)
}
