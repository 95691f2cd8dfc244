package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// keptInstances is how many instances of one VM keep their trusted keys: the
// present one, its predecessor, and strays that are being removed.
const keptInstances = 4

// Known yields the host keys trusted at first use for one instance of a VM
// (authorized_keys lines); none if it was never seen.
func (s *Store) Known(ctx context.Context, ref fleet.Ref, instance string) ([]string, error) {
	var text []byte
	err := s.db.QueryRowContext(ctx, `select keys from host_keys where fleet = ? and vm = ? and instance = ?`,
		ref.Fleet, ref.VM, instance).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	var keys []string
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	return keys, s.fail("loading the host keys of "+ref.String(), err)
}

// Trust stores the keys that one instance showed at first use. Errors:
// CodeConflict if other keys are trusted for this instance already,
// CodeInvalid without an instance or keys: a name alone is never trusted.
func (s *Store) Trust(ctx context.Context, ref fleet.Ref, instance string, keys []string) error {
	if instance == "" || len(keys) == 0 {
		return fleet.Errorf(fleet.CodeInvalid, "%s: host keys are trusted for an instance, and there must be some", ref)
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return s.fail("storing host keys", err)
	}
	return s.write(ctx, "storing the host keys of "+ref.String(), func(tx *sql.Tx) error {
		var stored string
		err := tx.QueryRowContext(ctx, `insert into host_keys (fleet, vm, instance, keys) values (?, ?, ?, ?)
			on conflict (fleet, vm, instance) do update set keys = host_keys.keys returning keys`,
			ref.Fleet, ref.VM, instance, string(text)).Scan(&stored)
		if err != nil {
			return err
		}
		if stored != string(text) {
			return fleet.Errorf(fleet.CodeConflict, "%s: instance %s is trusted with other host keys already", ref, instance).
				WithHint("somebody may be in between; an instance does not change its keys")
		}
		_, err = tx.ExecContext(ctx, `delete from host_keys where fleet = ?1 and vm = ?2 and seq not in
			(select seq from host_keys where fleet = ?1 and vm = ?2 order by seq desc limit ?3)`, ref.Fleet, ref.VM, keptInstances)
		return err
	})
}
