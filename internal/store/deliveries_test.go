package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
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
	if err != nil {
		t.Error(err)
	}
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

// Where GitLab counts nothing up, its clock orders, and arrival what that leaves
// open. Ours, which may be set back, orders nothing.
func TestOfALaneWithoutNumbersTheNewestByGitLabsClockCountsThenTheLast(t *testing.T) {
	s := fresh(t)
	for i, step := range []struct {
		what   string
		moment time.Time
		at     time.Time
		counts bool
	}{
		{"the first", noon, noon, true},
		{"an older one, late", noon.Add(-time.Second), noon, false},
		{"another of the same second", noon.Add(time.Millisecond), noon, true},
		{"one without a time", time.Time{}, noon, true},
		{"one with a time again", noon, noon, true},
		{"one without a time, after our clock was set back", time.Time{}, noon.Add(-time.Hour), true},
		{"one of a year to come", noon.Add(365 * 24 * time.Hour), noon, true},
		{"one of today, after it", noon.Add(time.Minute), noon.Add(time.Minute), true},
	} {
		d := delivery(i, 0)
		d.At, d.Tasks[0].Moment = step.at, step.moment
		receive(t, s, d)
		if newest, err := s.NewestInLane(t.Context(), "t 42"); err != nil || (newest == d.ID) != step.counts {
			t.Errorf("%s (%s): the newest is %s, %v", step.what, d.ID, newest, err)
		}
	}
}

func TestOneThatIsRefusedOnReceiptTakesNoPlaceInItsLane(t *testing.T) {
	s := fresh(t)
	receive(t, s, delivery(1, 1))
	refused := delivery(2, 2)
	refused.Tasks[0].Outcome, refused.Outcome, refused.FinishedAt = fleet.DeliveryRefused, fleet.DeliveryRefused, noon
	receive(t, s, refused)
	if newest, err := s.NewestInLane(t.Context(), "t 42"); err != nil || newest != "dl-1" {
		t.Errorf("newest %s, %v", newest, err)
	}
}

// A project may come to the same state again: the key tells that from a second
// webhook's delivery of the same event, which comes soon.
func TestTheSameBodyUnderAnotherKeyIsARepeatIfItComesSoonAndNothingNewerDid(t *testing.T) {
	body := func(n int, digest string, after time.Duration) *fleet.Delivery {
		d := delivery(n, 0)
		d.Digest, d.At = digest, noon.Add(after)
		return d
	}
	keyless := func(d *fleet.Delivery) *fleet.Delivery { d.Key = ""; return d }
	none := func(d *fleet.Delivery) *fleet.Delivery { // nothing follows from it
		d.Tasks, d.Outcome, d.FinishedAt = nil, fleet.DeliveryIgnored, d.At
		return d
	}
	for name, c := range map[string]struct {
		before []*fleet.Delivery
		then   *fleet.Delivery
		repeat bool
	}{
		"soon":                           {[]*fleet.Delivery{body(1, "a", 0)}, body(2, "a", 10*time.Minute), true},
		"soon, after the clock went":     {[]*fleet.Delivery{body(1, "a", 0)}, body(2, "a", -time.Minute), true},
		"later":                          {[]*fleet.Delivery{body(1, "a", 0)}, body(2, "a", 10*time.Minute+time.Second), false},
		"soon, something newer between":  {[]*fleet.Delivery{body(1, "a", 0), body(2, "b", 1)}, body(3, "a", 2), false},
		"soon, of no consequence":        {[]*fleet.Delivery{none(body(1, "a", 0)), body(2, "b", 1)}, none(body(3, "a", 2)), true},
		"later, without a key":           {[]*fleet.Delivery{body(1, "a", 0), body(2, "b", 1)}, keyless(body(3, "a", 29*24*time.Hour)), true},
		"later, the first without a key": {[]*fleet.Delivery{keyless(body(1, "a", 0))}, body(3, "a", 29*24*time.Hour), true},
	} {
		s := fresh(t)
		for _, d := range c.before {
			if first := receive(t, s, d); first != nil {
				t.Fatalf("%s: %s repeats %s", name, d.ID, first.ID)
			}
		}
		if first := receive(t, s, c.then); (first != nil) != c.repeat || first != nil && first.ID != "dl-1" {
			t.Errorf("%s: %+v", name, first)
		}
	}
}

func TestARepeatIsKnownByItsOwnKeyFromThenOn(t *testing.T) {
	s := fresh(t)
	receive(t, s, delivery(1, 0))
	again := delivery(2, 0)
	again.Digest = "digest-1"
	receive(t, s, again)
	late := delivery(3, 0)
	late.Key, late.At = "key-2", noon.Add(29*24*time.Hour)
	if first := receive(t, s, late); first == nil || first.ID != "dl-1" {
		t.Errorf("%+v", first)
	}
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
	asked := delivery(2, 1)
	asked.Outcome, asked.FinishedAt = fleet.DeliveryAsked, asked.At
	receive(t, s, asked)
	var all sync.WaitGroup
	for n := 3; n <= 1200; n++ {
		d := delivery(n, 0)
		d.Tasks, d.Outcome, d.FinishedAt = nil, fleet.DeliveryHint, d.At
		all.Go(func() { receive(t, s, d) })
	}
	all.Wait()
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
	keys, kept := 0, 0
	must(t, s.DB().QueryRowContext(t.Context(), `select (select count(*) from delivery_keys), (select count(*) from deliveries)`).Scan(&keys, &kept))
	if keys != kept {
		t.Errorf("%d keys of %d deliveries", keys, kept)
	}
}

// Deliveries of a burst share commits, and each has its own answer: repeats
// among them, and one that cannot be stored.
func TestDeliveriesThatComeTogetherAreEachStoredOnce(t *testing.T) {
	s := fresh(t)
	block := make(chan struct{})
	blocked := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { // holds the slot until every delivery waits
		if _, err := s.Insert(t.Context(), nil, control.Key{}, func([]control.Inserted) error { close(blocked); <-block; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-blocked
	const n = 200
	firsts, errs := make([]*fleet.Delivery, n), make([]error, n)
	for i := range n {
		d := delivery(i/2, int64(i/2)) // each twice
		d.ID = fmt.Sprintf("dl-%d", i)
		if i >= n-2 {
			d.Event, d.Key, d.Digest, d.ID = "push", fmt.Sprint("k", i), fmt.Sprint("x", i), "dl-taken" // the second one's id is taken
		}
		all.Go(func() { firsts[i], errs[i] = s.ReceiveDelivery(t.Context(), d) })
	}
	close(block)
	all.Wait()
	repeats, failures := 0, 0
	for i := range n {
		if errs[i] != nil {
			failures++
		}
		if firsts[i] != nil {
			repeats++
		}
	}
	if failures != 1 || repeats != n/2-1 {
		t.Errorf("%d failures, %d repeats", failures, repeats)
	}
	list, err := s.Deliveries(t.Context(), fleet.DeliveryFilter{Limit: n})
	must(t, err)
	if len(list) != n/2 {
		t.Errorf("%d are stored", len(list))
	}
}

func TestACanceledDeliveryIsNotStored(t *testing.T) {
	s := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Insert(t.Context(), nil, control.Key{}, func([]control.Inserted) error { // holds the slot
		_, err := s.ReceiveDelivery(ctx, delivery(1, 1))
		return err
	}); fleet.CodeOf(err) != fleet.CodeCanceled {
		t.Errorf("got %v", err)
	}
	if list, err := s.Deliveries(t.Context(), fleet.DeliveryFilter{}); err != nil || len(list) != 0 {
		t.Errorf("%d are stored, %v", len(list), err)
	}
}
