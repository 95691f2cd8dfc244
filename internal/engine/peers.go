package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Limits of identifying peers within one step.
const (
	peerLimit  = 4 * time.Second  // for one host
	peersLimit = 10 * time.Second // for one step; the next one goes on
)

// identifyPeers reads the system_id of the fleet's VMs that were never looked
// at, once for each, so that a clone of this VM is found before anything is
// stopped. A peer out of reach is left for later. done = all were asked.
func (w *work) identifyPeers(ctx context.Context) (done bool, err error) {
	unknown, err := w.unknownPeers(ctx)
	if err != nil || len(unknown) == 0 {
		return true, err
	}
	began := w.now()
	for _, m := range unknown {
		if w.now().Sub(began) > peersLimit {
			return false, nil
		}
		if err := w.identify(ctx, m); err != nil {
			return false, err
		}
		w.op.PeersAsked = append(w.op.PeersAsked[:len(w.op.PeersAsked):len(w.op.PeersAsked)], m.VM)
	}
	return true, nil
}

// unknownPeers lists the running members whose system_id is not stored.
func (w *work) unknownPeers(ctx context.Context) ([]fleet.Instance, error) {
	known := map[string]bool{w.op.VM: true}
	for _, name := range w.op.PeersAsked {
		known[name] = true
	}
	vms, err := w.Store.VMs(ctx, w.op.Fleet)
	if err != nil {
		return nil, storeError{err}
	}
	for _, vm := range vms {
		if vm.SystemID != "" {
			known[vm.VM] = true
		}
	}
	list, err := w.f.Machines.List(ctx)
	if err != nil {
		return nil, err
	}
	var unknown []fleet.Instance
	for _, m := range list {
		if !known[m.VM] && w.f.Has(m.VM) && m.Presence == fleet.PresenceRunning && m.Address != "" {
			unknown = append(unknown, m)
		}
	}
	return unknown, nil
}

// identify stores what one look at a peer tells. Not reaching it is no error.
func (w *work) identify(ctx context.Context, m fleet.Instance) error {
	bounded, cancel := timeout(ctx, peerLimit)
	defer cancel()
	ref := fleet.Ref{Fleet: w.op.Fleet, VM: m.VM}
	reading, err := w.f.Hosts.Glance(bounded, Target{Ref: ref, Instance: m.ID, Address: m.Address, HostKeys: m.HostKeys})
	if err != nil || reading.Subject.SystemID == "" {
		w.Log.DebugContext(ctx, "a peer could not be identified", "op", w.op.ID, "fleet", ref.Fleet, "vm", ref.VM, "error", err)
		return nil
	}
	is := fleet.Incarnation{Instance: m.ID, BootID: reading.Subject.BootID, SystemID: reading.Subject.SystemID}
	if err := w.Store.NoteIdentity(ctx, ref, is, m.Address, w.now()); err != nil {
		return storeError{err}
	}
	return nil
}
