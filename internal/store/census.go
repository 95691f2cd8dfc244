package store

import (
	"context"
	"database/sql"
	"errors"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Census yields every stored VM of every fleet, with what tells its state and
// nothing else: Ref, Intake, Missing and Failed. It is read at every scrape,
// so it is one query and decodes no document.
func (s *Store) Census(ctx context.Context) ([]fleet.VM, error) {
	list, err := census(ctx, s.db)
	return list, s.fail("counting the VMs", err)
}

func census(ctx context.Context, db *sql.DB) (list []fleet.VM, err error) {
	rows, err := db.QueryContext(ctx, `select fleet, vm, coalesce(state ->> '$.intake', ''),
		coalesce(state ->> '$.missing', 0), coalesce(state ->> '$.failed', 0) from vms`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var vm fleet.VM
		if err := rows.Scan(&vm.Fleet, &vm.VM, &vm.Intake, &vm.Missing, &vm.Failed); err != nil {
			return nil, err
		}
		list = append(list, vm)
	}
	return list, rows.Err()
}
