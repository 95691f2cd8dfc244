package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// BindIDToken stores whom an id_token serves, unless it serves somebody
// already, and yields whom it serves. It is forgotten after until.
func (s *Store) BindIDToken(ctx context.Context, issuer, id, holder string, until time.Time) (bound string, err error) {
	err = s.write(ctx, "binding an id_token", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `delete from id_tokens where until <= ?`, s.clock.Now().UnixNano()); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `insert into id_tokens (issuer, id, holder, until) values (?, ?, ?, ?)
			on conflict (issuer, id) do update set holder = id_tokens.holder returning holder`,
			issuer, id, holder, until.UnixNano()).Scan(&bound)
	})
	return bound, err
}

// SaveFollow stores the hash of a follow token with the operations it reads.
// It is forgotten after until.
func (s *Store) SaveFollow(ctx context.Context, hash string, operations []string, until time.Time) error {
	list, err := json.Marshal(operations)
	if err != nil {
		return s.fail("storing a follow token", err)
	}
	return s.write(ctx, "storing a follow token", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `delete from follow_tokens where until <= ?`, s.clock.Now().UnixNano()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `insert into follow_tokens (hash, operations, until) values (?, ?, ?)`, hash, string(list), until.UnixNano())
		return err
	})
}

// Followed yields the operations of a follow token, by its hash. Errors:
// CodeNotFound if it is not known or over.
func (s *Store) Followed(ctx context.Context, hash string) (operations []string, err error) {
	var list []byte
	err = s.db.QueryRowContext(ctx, `select operations from follow_tokens where hash = ? and until > ?`,
		hash, s.clock.Now().UnixNano()).Scan(&list)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fleet.Errorf(fleet.CodeNotFound, "no such follow token")
	}
	if err == nil {
		err = json.Unmarshal(list, &operations)
	}
	return operations, s.fail("reading a follow token", err)
}
