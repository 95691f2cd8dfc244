package store_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// delivery makes the n-th one: pending, with one task.
func delivery(n int, rank int64) *fleet.Delivery {
	return &fleet.Delivery{
		ID: fmt.Sprintf("dl-%d", n), Key: fmt.Sprintf("key-%d", n), Digest: fmt.Sprintf("digest-%d", n), At: noon.Add(time.Duration(n) * time.Second),
		Event: "pipeline", Project: 42, Outcome: fleet.DeliveryPending,
		Tasks: []fleet.DeliveryTask{{Trigger: "t", Fleet: "gcp", VMs: []string{"a"}, Lane: "t 42", Rank: rank, Outcome: fleet.DeliveryPending}},
	}
}

func receive(t *testing.T, s *store.Store, d *fleet.Delivery) *fleet.Delivery {
	t.Helper()
	first, err := s.ReceiveDelivery(t.Context(), d)
	must(t, err)
	return first
}

func fresh(t *testing.T) *store.Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "sluice.db"), nil)
}

// cases.md T81: the same event twice, by id or by content.
func TestADeliveryIsStoredOnceByItsKeyAndByItsBody(t *testing.T) {
	s := fresh(t)
	if first := receive(t, s, delivery(1, 1)); first != nil {
		t.Fatalf("the first is a repeat of %+v", first)
	}
	sameKey, sameBody := delivery(2, 2), delivery(3, 3)
	sameKey.Key = "key-1"
	sameBody.Digest = "digest-1"
	for i, again := range []*fleet.Delivery{sameKey, sameBody} {
		first := receive(t, s, again)
		if first == nil || first.ID != "dl-1" || first.Repeats != i+1 || !first.RepeatedAt.Equal(again.At) {
			t.Errorf("the repeat %d: %+v", i, first)
		}
	}
	list, err := s.Deliveries(t.Context(), fleet.DeliveryFilter{})
	must(t, err)
	if len(list) != 1 || list[0].Repeats != 2 {
		t.Errorf("%+v", list)
	}
	if newest, err := s.NewestInLane(t.Context(), "t 42"); err != nil || newest != "dl-1" {
		t.Errorf("a repeat entered the lane: %s, %v", newest, err)
	}
}

func TestDeliveriesWithoutAKeyAreToldApartByTheirBodies(t *testing.T) {
	s := fresh(t)
	for n := 1; n <= 2; n++ {
		d := delivery(n, int64(n))
		d.Key = ""
		if first := receive(t, s, d); first != nil {
			t.Errorf("%s is a repeat of %s", d.ID, first.ID)
		}
	}
}

// What came to nothing because no trigger matched is judged anew when a person
// sends it again after the configuration was mended.
func TestARepeatOfWhatCameToNothingIsWorkedOnIfItHasWorkNow(t *testing.T) {
	s := fresh(t)
	d := delivery(1, 1)
	d.Tasks, d.Outcome, d.FinishedAt = nil, fleet.DeliveryIgnored, d.At
	receive(t, s, d)
	again := delivery(2, 1)
	again.Key, again.Digest = "key-1", "digest-1"
	if first := receive(t, s, again); first != nil {
		t.Fatalf("a repeat of %+v", first)
	}
	got, err := s.Delivery(t.Context(), "dl-1")
	must(t, err)
	if again.ID != "dl-1" || got.Outcome != fleet.DeliveryPending || got.Repeats != 1 || len(got.Tasks) != 1 {
		t.Errorf("%+v", got)
	}
	if ids, err := s.PendingDeliveries(t.Context()); err != nil || len(ids) != 1 {
		t.Errorf("pending: %v, %v", ids, err)
	}
	third := delivery(3, 1)
	third.Key, third.Digest = "key-1", "digest-1"
	if first := receive(t, s, third); first == nil || first.Repeats != 2 {
		t.Errorf("once more: %+v", first)
	}
}

func TestOfALaneTheHighestRankCounts(t *testing.T) {
	s := fresh(t)
	newest := func(want string) {
		t.Helper()
		if got, err := s.NewestInLane(t.Context(), "t 42"); err != nil || got != want {
			t.Errorf("newest %s, %v; want %s", got, err, want)
		}
	}
	newest("")
	receive(t, s, delivery(1, 10))
	newest("dl-1")
	receive(t, s, delivery(2, 9)) // late
	newest("dl-1")
	receive(t, s, delivery(3, 10)) // the same pipeline once more
	newest("dl-1")
	first, err := s.Delivery(t.Context(), "dl-1")
	must(t, err)
	first.Outcome, first.FinishedAt = fleet.DeliveryRefused, noon
	must(t, s.UpdateDelivery(t.Context(), first))
	receive(t, s, delivery(4, 10)) // the same once more, after it came to nothing
	newest("dl-4")
	receive(t, s, delivery(5, 11))
	newest("dl-5")
}

func TestADeliveryIsUpdatedByCompareAndSet(t *testing.T) {
	s := fresh(t)
	receive(t, s, delivery(1, 1))
	one, err := s.Delivery(t.Context(), "dl-1")
	must(t, err)
	other := *one
	one.Outcome, one.FinishedAt = fleet.DeliveryAsked, noon
	must(t, s.UpdateDelivery(t.Context(), one))
	if err := s.UpdateDelivery(t.Context(), &other); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("an old copy was stored: %v", err)
	}
	must(t, s.UpdateDelivery(t.Context(), one))
	if ids, err := s.PendingDeliveries(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("pending: %v, %v", ids, err)
	}
	if _, err := s.Delivery(t.Context(), "dl-9"); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

func TestDeliveriesAreListedNewestFirstAndByWhatTheyAre(t *testing.T) {
	s := fresh(t)
	for n := 1; n <= 3; n++ {
		d := delivery(n, int64(n))
		if n == 2 {
			d.Event, d.Outcome, d.Tasks, d.FinishedAt = "job", fleet.DeliveryHint, nil, d.At
		}
		receive(t, s, d)
	}
	for want, filter := range map[string]fleet.DeliveryFilter{
		"dl-3dl-2dl-1": {}, "dl-3": {Limit: 1}, "dl-2": {Event: "job"}, "dl-3dl-1": {Outcome: fleet.DeliveryPending},
	} {
		list, err := s.Deliveries(t.Context(), filter)
		must(t, err)
		got := ""
		for _, d := range list {
			got += d.ID
		}
		if got != want {
			t.Errorf("%+v: %s, want %s", filter, got, want)
		}
	}
	if at, err := s.LastDelivery(t.Context(), 42); err != nil || !at.Equal(noon.Add(3*time.Second)) {
		t.Errorf("last heard at %s, %v", at, err)
	}
	if at, err := s.LastDelivery(t.Context(), 43); err != nil || !at.IsZero() {
		t.Errorf("a project that was never heard: %s, %v", at, err)
	}
}

// A busy group's hooks must not fill the disk; what has work left stays.
func TestOldDeliveriesAreForgottenPendingOnesNever(t *testing.T) {
	if testing.Short() {
		t.Skip("stores 1,200 deliveries")
	}
	s := fresh(t)
	receive(t, s, delivery(1, 1))
	for n := 2; n <= 1200; n++ {
		d := delivery(n, 0)
		d.Tasks, d.Outcome, d.FinishedAt = nil, fleet.DeliveryHint, d.At
		if n == 2 {
			d.Outcome = fleet.DeliveryAsked
		}
		receive(t, s, d)
	}
	list, err := s.Deliveries(t.Context(), fleet.DeliveryFilter{Limit: 5000})
	must(t, err)
	if len(list) != 1002 || list[len(list)-1].ID != "dl-1" || list[len(list)-2].ID != "dl-2" {
		t.Errorf("%d are kept, the oldest %s", len(list), list[len(list)-1].ID)
	}
	late := delivery(1300, 2)
	late.At = noon.Add(31 * 24 * time.Hour)
	for n := range 100 {
		d := *late
		d.ID, d.Key, d.Digest = fmt.Sprintf("dl-x%d", n), fmt.Sprintf("x%d", n), fmt.Sprintf("x%d", n)
		receive(t, s, &d)
	}
	if _, err := s.Delivery(t.Context(), "dl-2"); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("one of a month ago is kept: %v", err)
	}
	if _, err := s.Delivery(t.Context(), "dl-1"); err != nil {
		t.Errorf("a pending one was forgotten: %v", err)
	}
}
