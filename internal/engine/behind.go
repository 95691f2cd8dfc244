package engine

import (
	"context"
	"errors"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// catchUp raises the VM's order number to what its host has obeyed, if the
// host refused an order as late that no newer one of this journal has
// overtaken: the journal was restored from a backup, or the VM had another
// name. Only under --take-over: a copy of the journal that somebody serves
// beside the real one must go on being refused. True = give the order anew.
func (w *work) catchUp(ctx context.Context, refusal error) (bool, error) {
	obeyed := fleet.ObeyedOf(refusal)
	if obeyed == 0 || !w.op.Request.TakeOver {
		return false, nil
	}
	vm, err := w.row(ctx)
	if err != nil {
		return false, storeError{err}
	}
	known := max(vm.OrderNumber, w.op.Order.Number) // the row may be from before the order
	if known >= obeyed {
		return false, nil // this order was overtaken
	}
	w.fact(fleet.FactWarning, "the host has obeyed order %d, and this journal knows %d at most: taken over, numbers go on from there", obeyed, known)
	vm.OrderNumber = obeyed
	if err := w.save(ctx); err != nil {
		return false, storeError{err}
	}
	return true, nil
}

// giveStop commits a stop order and gives it: once more where the first showed
// that the journal is behind and may catch up.
func (w *work) giveStop(ctx context.Context, boot string) (*fleet.HostReading, error) {
	for {
		if err := w.order(ctx, fleet.OrderStop, boot); err != nil {
			return nil, storeError{err}
		}
		reading, err := w.f.Hosts.StopIntake(ctx, w.oldTarget(), w.op.Order)
		behind, failed := w.catchUp(ctx, err)
		if failed != nil {
			return nil, failed
		}
		if !behind {
			return reading, err
		}
	}
}

// isStore says whether an error is of our own store.
func isStore(err error) bool {
	_, ok := errors.AsType[storeError](err)
	return ok
}
