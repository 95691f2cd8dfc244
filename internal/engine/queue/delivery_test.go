package queue_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/queue"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// inbox is a worker of deliveries over a looker that counts.
type inbox struct{ *looker }

func (i inbox) LookDelivery(ctx context.Context, id string) (time.Duration, bool, error) {
	return i.Look(ctx, id)
}

// received stores the n-th delivery, with work to do.
func received(t *testing.T, s *store.Store, n int) string {
	t.Helper()
	text := strconv.Itoa(n)
	d := &fleet.Delivery{
		ID: "dl-" + text, Key: "key-" + text, Digest: "digest-" + text, At: time.Now(), Event: "push", Outcome: fleet.DeliveryPending,
		Tasks: []fleet.DeliveryTask{{Trigger: "t", Fleet: "f", VMs: []string{"a"}, Lane: "l" + text, Outcome: fleet.DeliveryPending, Until: time.Now().Add(time.Hour)}},
	}
	first, err := s.ReceiveDelivery(t.Context(), d)
	must(t, err)
	if first != nil {
		t.Fatalf("%s is known", first.ID)
	}
	return d.ID
}

// startWith starts a queue that works on deliveries too.
func startWith(t *testing.T, s *store.Store, operations, deliveries *looker) *queue.Queue {
	t.Helper()
	q := newQueue(t, s, operations, nil)
	q.Deliveries = inbox{deliveries}
	must(t, q.Start(context.Background()))
	t.Cleanup(func() { stop(t, q) })
	return q
}

func TestAWokenDeliveryIsWorkedOnUntilItIsDone(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	l := newLooker(func(_ context.Context, _ string, n int) (time.Duration, bool, error) {
		if n == 1 {
			return 0, false, errors.New("the disk is full for a moment")
		}
		return 10 * time.Millisecond, n == 4, nil
	})
	q := startWith(t, s, newLooker(forever), l)
	id := received(t, s, 1)
	must(t, q.WakeDelivery(t.Context(), id))
	eventually(t, "four looks", patience, func() bool { return l.count(id) == 4 })
	eventually(t, "its job has ended", patience, func() bool {
		return jobs(t, s, "kind = 'webhook_delivery' and state = 'completed'") == 1
	})
}

func TestAWakeEndsADeliverysLongWait(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	l := newLooker(forever)
	q := startWith(t, s, newLooker(forever), l)
	id := received(t, s, 1)
	must(t, q.WakeDelivery(t.Context(), id))
	resting := func(n int) func() bool {
		return func() bool {
			return l.count(id) == n && jobs(t, s, "kind = 'webhook_delivery' and state = 'scheduled'") == 1
		}
	}
	eventually(t, "it rests", patience, resting(1))
	must(t, q.WakeDelivery(t.Context(), id))
	eventually(t, "it was looked at again and rests", patience, resting(2))
}

// The receiver answers GitLab once the delivery is stored: a process may end
// before it says so to the queue.
func TestADeliveryThatNobodyWokeIsWorkedOnAfterARestart(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	id := received(t, s, 1)
	l := newLooker(func(context.Context, string, int) (time.Duration, bool, error) { return 0, true, nil })
	startWith(t, s, newLooker(forever), l)
	eventually(t, "a look", patience, func() bool { return l.count(id) >= 1 })
}

func TestWithoutAWorkerDeliveriesStandStill(t *testing.T) {
	t.Parallel()
	s := freshStore(t)
	received(t, s, 1)
	q := start(t, s, newLooker(forever), nil)
	id := ask(t, s, "a")[0]
	must(t, q.Wake(t.Context(), id))
	eventually(t, "the operation's job rests", patience, func() bool { return jobs(t, s, "kind = 'vm_operation' and state = 'scheduled'") == 1 })
	if n := jobs(t, s, "kind = 'webhook_delivery'"); n != 0 {
		t.Errorf("%d jobs of deliveries", n)
	}
}
