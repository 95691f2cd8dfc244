package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// VM yields the stored row, or a fresh one (intake serving) if there is none.
// Trust holds the keys of its present instance.
func (s *Store) VM(ctx context.Context, ref fleet.Ref) (*fleet.VM, error) {
	vm, err := loadVM(ctx, s.db, ref)
	return vm, s.fail("loading VM "+ref.String(), err)
}

func loadVM(ctx context.Context, q querier, ref fleet.Ref) (*fleet.VM, error) {
	vms, err := vmRows(ctx, q, `where v.fleet = ? and v.vm = ?`, ref.Fleet, ref.VM)
	if err != nil {
		return nil, err
	}
	if len(vms) == 0 {
		return &fleet.VM{Ref: ref, Intake: fleet.IntakeServing}, nil
	}
	return &vms[0], nil
}

// VMs lists the fleet's stored rows by name. A member that nothing was ever
// done to has none.
func (s *Store) VMs(ctx context.Context, fleetName string) ([]fleet.VM, error) {
	vms, err := vmRows(ctx, s.db, `where v.fleet = ? order by v.vm`, fleetName)
	return vms, s.fail("listing the VMs of "+fleetName, err)
}

func vmRows(ctx context.Context, q querier, where string, args ...any) (list []fleet.VM, err error) {
	//nolint:gosec // where is one of the two constants above
	rows, err := q.QueryContext(ctx, `select v.order_number, v.state, coalesce(k.keys, 'null') from vms v
		left join host_keys k on k.fleet = v.fleet and k.vm = v.vm and k.instance = v.state ->> '$.instance' `+where, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var number int64
		var state, keys []byte
		if err := rows.Scan(&number, &state, &keys); err != nil {
			return nil, err
		}
		var vm fleet.VM
		if err := errors.Join(json.Unmarshal(state, &vm), json.Unmarshal(keys, &vm.Trust)); err != nil {
			return nil, err
		}
		vm.OrderNumber = number
		list = append(list, vm)
	}
	return list, rows.Err()
}

// SaveVM stores the row. Two fields have owners of their own and are left
// alone: the order number only rises, and Trust is written by [Store.Trust],
// so that the keys of one instance never pass to the next.
func (s *Store) SaveVM(ctx context.Context, vm *fleet.VM) error {
	return s.write(ctx, "storing VM "+vm.Ref.String(), func(tx *sql.Tx) error { return saveVM(ctx, tx, vm) })
}

// NoteIdentity stores who the VM's host is, and leaves the rest of its row as
// it is at this moment. A row that knows another instance by now stays whole.
func (s *Store) NoteIdentity(ctx context.Context, ref fleet.Ref, is fleet.Incarnation, address string, at time.Time) error {
	return s.write(ctx, "storing the identity of "+ref.String(), func(tx *sql.Tx) error {
		vm, err := loadVM(ctx, tx, ref)
		if err != nil {
			return err
		}
		if vm.Instance != "" && vm.Instance != is.Instance {
			return nil
		}
		vm.Incarnation, vm.Address, vm.UpdatedAt = is, address, at
		return saveVM(ctx, tx, vm)
	})
}

func saveVM(ctx context.Context, tx *sql.Tx, vm *fleet.VM) error {
	row := *vm
	row.Trust = nil
	state, err := json.Marshal(row)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `insert into vms (fleet, vm, serving, order_number, state) values (?, ?, ?, ?, ?)
		on conflict (fleet, vm) do update set serving = excluded.serving,
		order_number = max(order_number, excluded.order_number), state = excluded.state`,
		vm.Fleet, vm.VM, vm.Serving(), vm.OrderNumber, string(state))
	return err
}

// NextOrder raises the VM's order number and yields it.
func (s *Store) NextOrder(ctx context.Context, ref fleet.Ref) (number int64, err error) {
	fresh := fleet.VM{Ref: ref, Intake: fleet.IntakeServing}
	state, err := json.Marshal(fresh)
	if err != nil {
		return 0, s.fail("numbering an order", err)
	}
	err = s.write(ctx, "numbering an order to "+ref.String(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `insert into vms (fleet, vm, serving, order_number, state) values (?, ?, ?, 1, ?)
			on conflict (fleet, vm) do update set order_number = order_number + 1 returning order_number`,
			ref.Fleet, ref.VM, fresh.Serving(), string(state)).Scan(&number)
	})
	return number, err
}
