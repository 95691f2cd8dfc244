package hooks

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Paces of what a task waits for.
const (
	imagePace = 15 * time.Second // between two looks for an image
	askPace   = 15 * time.Second // between two tries while another operation is in the way
	againSoon = 50 * time.Millisecond
	findLimit = 20 * time.Second // of one look for an image
)

// Worker works off what deliveries come to.
type Worker struct {
	Store   Store
	Control Control
	Images  Images
	Clock   Clock
	Log     *slog.Logger

	// asking lets one delivery ask at a time: an older one that saw itself the
	// newest must not ask after the newer one did.
	asking sync.Mutex
}

// LookDelivery does what is left of a delivery's work. wait says when to look
// again; done that nobody needs to. It may be repeated, cut off and repeated at
// any point: operations are asked for under keys that derive from the delivery.
//
// Errors: of the store only. What a task meets is written to the delivery.
func (w *Worker) LookDelivery(ctx context.Context, id string) (wait time.Duration, done bool, err error) {
	d, err := w.Store.Delivery(ctx, id)
	if err != nil {
		return 0, fleet.CodeOf(err) == fleet.CodeNotFound, err
	}
	if !d.FinishedAt.IsZero() {
		return 0, true, nil
	}
	before := d.Reason
	changed := false
	for i := range d.Tasks {
		if d.Tasks[i].Outcome != fleet.DeliveryPending {
			continue
		}
		pause, moved, err := w.work(ctx, d, &d.Tasks[i])
		if err != nil {
			return 0, false, err
		}
		changed = changed || moved
		if d.Tasks[i].Outcome == fleet.DeliveryPending && (wait == 0 || pause < wait) {
			wait = pause
		}
	}
	settle(d, w.now())
	if changed || d.Reason != before || !d.FinishedAt.IsZero() {
		err := w.Store.UpdateDelivery(ctx, d)
		if fleet.CodeOf(err) == fleet.CodeConflict { // a repeat was noted meanwhile
			return againSoon, false, nil
		}
		if err != nil {
			return 0, false, err
		}
	}
	if !d.FinishedAt.IsZero() {
		w.Log.InfoContext(ctx, "delivery", "delivery", d.ID, "event", d.Event, "outcome", d.Outcome, "reason", d.Reason)
		return 0, true, nil
	}
	return wait, false, nil
}

// work brings one task forward. moved = there is something to store.
func (w *Worker) work(ctx context.Context, d *fleet.Delivery, t *fleet.DeliveryTask) (wait time.Duration, moved bool, err error) {
	if ended, err := w.over(ctx, d, t); err != nil || ended {
		return 0, true, err
	}
	if !t.ImageUntil.IsZero() && !t.ImageFound {
		if wait, found := w.find(ctx, t); !found {
			return wait, true, nil
		}
	}
	w.asking.Lock()
	defer w.asking.Unlock()
	if ended, err := w.over(ctx, d, t); err != nil || ended {
		return 0, true, err
	}
	return w.ask(ctx, d, t)
}

// over ends a task that a newer event took over, or that took too long.
func (w *Worker) over(ctx context.Context, d *fleet.Delivery, t *fleet.DeliveryTask) (bool, error) {
	newest, err := w.Store.NewestInLane(ctx, t.Lane)
	switch {
	case err != nil:
		return false, err
	case newest != d.ID:
		t.Outcome, t.Reason = fleet.DeliverySuperseded, "delivery "+newest+" is of the same or a newer state of the project"
		return true, nil
	case w.now().After(t.Until):
		t.Outcome, t.Reason = fleet.DeliveryRefused, "given up at "+t.Until.Format(time.RFC3339)+": "+t.Reason
		return true, nil
	}
	return false, nil
}

// find looks for the image. Whatever the provider says, short of yes, may
// change until the time is up.
func (w *Worker) find(ctx context.Context, t *fleet.DeliveryTask) (wait time.Duration, found bool) {
	if len(t.VMs) == 0 {
		return 0, true
	}
	ctx, cancel := context.WithTimeout(ctx, findLimit)
	defer cancel()
	err := w.Images.Find(ctx, t.Fleet, t.VMs[0], t.Image)
	if err == nil {
		t.ImageFound, t.Reason = true, ""
		return 0, true
	}
	if left := t.ImageUntil.Sub(w.now()); left > 0 {
		t.Reason = "waits for the image until " + t.ImageUntil.Format(time.RFC3339) + ": " + err.Error()
		return min(left, imagePace), false
	}
	t.Outcome = fleet.DeliveryRefused
	t.Reason = "the image did not come by " + t.ImageUntil.Format(time.RFC3339) + ", nothing was touched: " + err.Error()
	return 0, false
}

// ask asks for the operations that are not asked for yet, one by one: a VM with
// something in its way holds up no other.
func (w *Worker) ask(ctx context.Context, d *fleet.Delivery, t *fleet.DeliveryTask) (wait time.Duration, moved bool, err error) {
	var blocked []string
	for _, vm := range t.VMs {
		if slices.ContainsFunc(t.Asked, func(a fleet.AskedVM) bool { return a.VM == vm }) {
			continue
		}
		answers, err := w.Control.Ask(ctx, intent(d, t, vm))
		switch code := fleet.CodeOf(err); {
		case ctx.Err() != nil:
			return 0, false, ctx.Err()
		case err == nil:
			t.Asked = append(t.Asked, fleet.AskedVM{VM: vm, Operation: answers[0].Operation.ID, Attached: answers[0].Attached})
			moved = true
		case code == fleet.CodeConflict || fleet.Retryable(code):
			blocked = append(blocked, err.Error())
		case code == fleet.CodeInternal: // the store's or ours: the queue tries again
			return 0, false, err
		default:
			t.Asked = append(t.Asked, fleet.AskedVM{VM: vm, Refused: err.Error()})
			moved = true
		}
	}
	if len(blocked) > 0 {
		reason := "waits: " + blocked[0]
		moved = moved || reason != t.Reason
		t.Reason = reason
		return askPace, moved, nil
	}
	t.Outcome, t.Reason = fleet.DeliveryAsked, ""
	if refused := refusals(t.Asked); len(refused) > 0 {
		t.Outcome, t.Reason = fleet.DeliveryRefused, strings.Join(refused, "; ")
	}
	return 0, true, nil
}

func refusals(asked []fleet.AskedVM) []string {
	var list []string
	for _, a := range asked {
		if a.Refused != "" {
			list = append(list, a.Refused)
		}
	}
	return list
}

// intent is what is asked for one VM. Its key makes a repeat harmless.
func intent(d *fleet.Delivery, t *fleet.DeliveryTask, vm string) control.Intent {
	why := d.Event
	if d.Status != "" {
		why += " " + d.Status
	}
	why += " on " + d.Ref
	if d.URL != "" {
		why += " (" + d.URL + ")"
	}
	return control.Intent{
		Fleet: t.Fleet, VMs: []string{vm}, Kind: fleet.KindRecreate, Image: t.Image, Newer: true,
		By:  fleet.Actor{Name: "trigger:" + t.Trigger, From: control.FromWebhook, Why: why},
		Key: "delivery/" + d.ID + "/" + t.Trigger + "/" + vm,
	}
}

func (w *Worker) now() time.Time { return w.Clock.Now().Round(0).UTC() }
