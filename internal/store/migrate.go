package store

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

//go:embed schema/001_truth.sql
var truth string

//go:embed schema/002_deliveries.sql
var deliveries string

// migrations bring the tables from version i to i+1. Only ever append: files
// in the field have run the earlier ones.
var migrations = []string{truth, deliveries}

// applicationID marks the file as ours ("Slce"; sqlite.org/pragma.html#pragma_application_id).
const applicationID = 0x536c6365

// migrate brings the file to our version, one transaction for all of it.
func (s *Store) migrate(ctx context.Context) error {
	return s.write(ctx, "opening the journal", func(tx *sql.Tx) error {
		version, err := s.version(ctx, tx)
		if err != nil {
			return err
		}
		for _, statements := range migrations[version:] {
			if _, err := tx.ExecContext(ctx, statements); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("pragma user_version = %d; pragma application_id = %d", len(migrations), applicationID))
		return err
	})
}

// checkVersion refuses tables that this program does not know.
func (s *Store) checkVersion(ctx context.Context) error {
	version, err := s.version(ctx, s.db)
	if err == nil && version < len(migrations) {
		err = fleet.Errorf(fleet.CodeConflict, "the journal %s is of an older version (%d, this Sluice reads %d)", s.path, version, len(migrations)).
			WithHint("a changing command or `sluice serve` brings it up to date")
	}
	return s.fail("opening the journal", err)
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// version yields the version of the tables: 0 for an empty file.
func (s *Store) version(ctx context.Context, q querier) (int, error) {
	var version, application, tables int
	err := q.QueryRowContext(ctx, `select (select user_version from pragma_user_version),
		(select application_id from pragma_application_id), (select count(*) from sqlite_schema)`).
		Scan(&version, &application, &tables)
	switch {
	case err != nil:
		return 0, err
	case application != applicationID && tables > 0:
		return 0, fleet.Errorf(fleet.CodeInvalid, "%s is a SQLite file, but not a journal of Sluice", s.path).
			WithHint("name another file in store.sqlite")
	case version > len(migrations):
		return 0, fleet.Errorf(fleet.CodeConflict, "the journal %s was written by a newer Sluice (version %d, this one knows %d)", s.path, version, len(migrations)).
			WithHint("use that Sluice, or restore the backup made before the upgrade")
	default:
		return version, nil
	}
}
