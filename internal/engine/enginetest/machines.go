package enginetest

import (
	"context"
	"encoding/json"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

type machines struct{ w *World }

func (m machines) instance(vm *VM) fleet.Instance {
	i := fleet.Instance{
		ID: vm.ID, VM: vm.Name, Presence: fleet.PresenceRunning, Ready: !vm.Ready.After(m.w.now),
		Address: vm.Name + ":22", CreatedAt: vm.Born, Labels: map[string]string{},
	}
	if vm.Off {
		i.Presence = fleet.PresenceOff
	}
	if vm.Label != "" {
		i.Labels[fleet.LabelOperation] = vm.Label
	}
	return i
}

func (m machines) List(context.Context) ([]fleet.Instance, error) {
	if err := m.w.before("list"); err != nil {
		return nil, err
	}
	var list []fleet.Instance
	for _, vm := range m.w.VMs {
		if !vm.absent(m.w.now) {
			list = append(list, m.instance(vm))
		}
	}
	return list, nil
}

func (m machines) Describe(_ context.Context, name string) ([]fleet.Instance, error) {
	if err := m.w.before("describe"); err != nil {
		return nil, err
	}
	var list []fleet.Instance
	if m.w.Blind[m.w.Calls["describe"]] {
		return nil, nil
	}
	for _, vm := range m.w.Living(name) {
		list = append(list, m.instance(vm))
	}
	return list, nil
}

func (m machines) Prepare(_ context.Context, vm, image string) (fleet.Prepared, error) {
	if err := m.w.before("prepare"); err != nil {
		return fleet.Prepared{}, err
	}
	return fleet.Prepared{Image: image, Spec: json.RawMessage(`{"vm":"` + vm + `"}`)}, nil
}

func (m machines) Check(context.Context, string, fleet.Prepared) error { return m.w.before("check") }

func (m machines) Create(_ context.Context, o engine.CreateOrder) (engine.Progress, error) {
	if err := m.w.before("create"); err != nil {
		return engine.Progress{}, err
	}
	var made *VM
	for _, vm := range m.w.Living(o.VM) {
		if vm.Label == o.Operation {
			made = vm
		}
	}
	if made == nil {
		if len(m.w.Living(o.VM)) > 0 {
			return engine.Progress{}, fleet.Errorf(fleet.CodeConflict, "the name %s is taken", o.VM)
		}
		made = m.w.birth(o.VM, o.Operation)
		m.w.journal("create %s %s for %s", o.VM, made.ID, o.Operation)
	}
	if err := m.w.answer("create"); err != nil {
		return engine.Progress{}, err
	}
	i := m.instance(made)
	return engine.Progress{Done: true, Instance: &i}, nil
}

func (m machines) Delete(_ context.Context, o engine.DeleteOrder) (engine.Progress, error) {
	if err := m.w.before("delete"); err != nil {
		return engine.Progress{}, err
	}
	done := true
	for _, vm := range m.w.VMs {
		if vm.ID != o.Instance || vm.absent(m.w.now) {
			continue
		}
		done = false
		if vm.Gone.IsZero() {
			m.w.settle(vm)
			m.w.cut(vm)
			vm.Gone, vm.Off = m.w.now.Add(m.w.DeleteDelay), true
			m.w.journal("delete %s %s", vm.Name, vm.ID)
		}
	}
	if err := m.w.answer("delete"); err != nil {
		return engine.Progress{}, err
	}
	return engine.Progress{Done: done}, nil
}

func (m machines) Remains(_ context.Context, o engine.DeleteOrder) ([]string, error) {
	if err := m.w.before("remains"); err != nil {
		return nil, err
	}
	for _, vm := range m.w.VMs {
		if vm.ID != o.Instance {
			continue
		}
		if !vm.absent(m.w.now) {
			return []string{"instance " + vm.ID, "disk " + vm.ID}, nil
		}
		if m.w.now.Sub(vm.Gone) < m.w.DiskLinger {
			return []string{"disk " + vm.ID}, nil
		}
	}
	return nil, nil
}

var _ engine.Clock = (*World)(nil)

// settled time between looks when nothing is due sooner.
const tick = 100 * time.Millisecond
