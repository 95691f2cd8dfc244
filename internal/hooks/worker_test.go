package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

func TestAPipelinesSuccessRecreatesTheFleetOnItsImage(t *testing.T) {
	w := newWorld(t, triggers(t))
	d := w.work(w.send("k", fixture(t, "pipeline")).ID)
	w.wantOutcome(d, fleet.DeliveryAsked, "trigger pipeline-gcp: recreate 2 VMs of gcp with image runner-5f1d0c8e")
	w.wantOperations("gcp/a runner-5f1d0c8e", "gcp/b runner-5f1d0c8e")
	ops, err := w.store.Operations(t.Context(), control.Filter{Limit: 1})
	w.must(err)
	if by := ops[0].Request.By; by.Name != "trigger:pipeline-gcp" || by.From != "webhook" || by.Why != "pipeline success on main ("+web+"/-/pipelines/3100)" {
		t.Errorf("asked by %+v", by)
	}
	if got := d.Tasks[0].Asked[1].Operation; got != ops[0].ID || d.FinishedAt.IsZero() {
		t.Errorf("%+v", d)
	}
}

// The delivery twice, ten times, by its key and by its body alone: once.
func TestTheSameDeliveryAgainAsksForNothingMore(t *testing.T) {
	w := newWorld(t, triggers(t))
	body := fixture(t, "pipeline")
	first := w.work(w.send("k", body).ID)
	for _, op := range []string{"a", "b"} {
		w.set("gcp", op, finish)
	}
	for i := range 10 {
		again := w.send("k", body)
		if i%2 == 1 {
			again = w.send(fmt.Sprint("another", i), body)
		}
		if again.ID != first.ID || again.Repeats == 0 {
			t.Fatalf("%+v", again)
		}
		w.work(again.ID)
	}
	w.wantOperations("gcp/a runner-5f1d0c8e succeeded", "gcp/b runner-5f1d0c8e succeeded")
	if w.counted["pipeline repeated"] != 15 || w.counted["pipeline accepted"] != 1 {
		t.Errorf("counted %v", w.counted)
	}
}

// moved is a store in which a repeat is noted just before the worker's own note.
type moved struct {
	hooks.Store
	before func()
}

func (m *moved) UpdateDelivery(ctx context.Context, d *fleet.Delivery) error {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	return m.Store.UpdateDelivery(ctx, d)
}

// A repeat that comes while the work is done is no trouble: the worker looks
// again, and asks for nothing twice.
func TestARepeatInMidWorkIsNoFailure(t *testing.T) {
	w := newWorld(t, triggers(t))
	body := fixture(t, "pipeline")
	id := w.send("k", body).ID
	w.worker.Store = &moved{Store: w.worker.Store, before: func() { w.send("k", body) }}
	if wait, done, err := w.worker.LookDelivery(t.Context(), id); err != nil || done || wait <= 0 {
		t.Fatalf("%s, %v, %v", wait, done, err)
	}
	w.wantOutcome(w.work(id), fleet.DeliveryAsked, "")
	w.wantOperations("gcp/a runner-5f1d0c8e", "gcp/b runner-5f1d0c8e")
}

// Every kind, in every order, each twice: what is asked for in the end is the
// same but for the order.
func TestEveryKindOfEventInAnyOrderTwice(t *testing.T) {
	names := []string{"pipeline", "push", "tag_push", "release", "merge_request", "job", "deployment", "issue", "note", "wiki_page", "feature_flag", "access_token", "group_member"}
	var want []string
	for turn := range names {
		order := append(slices.Clone(names[turn:]), names[:turn]...)
		if turn%2 == 1 {
			slices.Reverse(order)
		}
		w := newWorld(t, triggers(t))
		w.images.put("merged-aa11bb22")
		for _, name := range append(order, order...) {
			d := w.send("key of "+name, fixture(t, name))
			if d.Outcome == fleet.DeliveryPending {
				w.work(d.ID)
			}
		}
		// Only one event at a time may have its VM: let each operation end, and the
		// next have its turn.
		for range 10 {
			ids, err := w.store.PendingDeliveries(t.Context())
			w.must(err)
			ops, err := w.store.Operations(t.Context(), control.Filter{Unfinished: true, Limit: 1000})
			w.must(err)
			for i := range ops {
				finish(&ops[i])
				w.must(w.store.UpdateOperation(t.Context(), &ops[i], nil, nil, nil))
			}
			for _, id := range ids {
				w.work(id)
			}
		}
		list, err := w.store.Deliveries(t.Context(), fleet.DeliveryFilter{Limit: 1000})
		w.must(err)
		var got []string
		for _, d := range list {
			line := d.Event + " " + string(d.Outcome)
			for _, task := range d.Tasks {
				for _, asked := range task.Asked {
					line += " " + asked.VM + asked.Refused
				}
			}
			got = append(got, line)
		}
		slices.Sort(got)
		if want == nil {
			want = got
		}
		if len(got) != len(names) || !slices.Equal(got, want) {
			t.Errorf("order %v:\n got %q\nwant %q", order, got, want)
		}
	}
	if !slices.Contains(want, "merge asked a b") || !slices.Contains(want, "tag asked x") {
		t.Errorf("%q", want)
	}
}

// A merge comes before its image is built.
func TestAMergeWaitsForItsImageBeforeAnyVMIsTouched(t *testing.T) {
	w := newWorld(t, triggers(t))
	id := w.send("k", fixture(t, "merge_request")).ID
	w.wantOutcome(w.work(id), fleet.DeliveryPending, "waits for the image until 2026-11-30T13:00:00Z: there is no image merged-aa11bb22")
	w.wantOperations()
	w.advance(50 * time.Minute)
	w.images.err = errors.New("the cloud is away") // not a no either
	w.wantOutcome(w.work(id), fleet.DeliveryPending, "the cloud is away")
	w.images.put("merged-aa11bb22")
	w.wantOutcome(w.work(id), fleet.DeliveryAsked, "")
	w.wantOperations("gcp/a merged-aa11bb22", "gcp/b merged-aa11bb22")
}

func TestAnImageThatDoesNotComeTouchesNothing(t *testing.T) {
	w := newWorld(t, triggers(t))
	id := w.send("k", fixture(t, "merge_request")).ID
	wait, done, err := w.worker.LookDelivery(t.Context(), id)
	if err != nil || done || wait <= 0 || wait > time.Minute {
		t.Errorf("%s, %t, %v", wait, done, err)
	}
	w.advance(time.Hour + time.Second)
	w.wantOutcome(w.work(id), fleet.DeliveryRefused, "the image did not come by 2026-11-30T13:00:00Z, nothing was touched: there is no image merged-aa11bb22")
	w.wantOperations()
	if _, done, err := w.worker.LookDelivery(t.Context(), id); !done || err != nil {
		t.Errorf("it is not over: %t, %v", done, err)
	}
}

// The success of an old pipeline, retried or late, must not undo a newer one.
func TestALateEventOfAnOlderPipelineIsSuperseded(t *testing.T) {
	w := newWorld(t, triggers(t))
	w.work(w.send("new", fixture(t, "pipeline", `"id": 3100`, `"id": 3101`)).ID)
	old := w.work(w.send("old", fixture(t, "pipeline", sha, strings.Repeat("a", 40))).ID)
	w.wantOutcome(old, fleet.DeliverySuperseded, "is of the same or a newer state of the project")
	w.wantOperations("gcp/a runner-5f1d0c8e", "gcp/b runner-5f1d0c8e")
}

// A pipeline that a manual job moves to success once more is the same state of
// the project: its VMs were recreated.
func TestASecondSuccessOfOnePipelineIsNotAnotherRecreate(t *testing.T) {
	w := newWorld(t, triggers(t))
	w.work(w.send("k1", fixture(t, "pipeline")).ID)
	again := w.work(w.send("k2", fixture(t, "pipeline", `"duration": 1050`, `"duration": 2000`)).ID)
	w.wantOutcome(again, fleet.DeliverySuperseded, "the same or a newer state")
	w.wantOperations("gcp/a runner-5f1d0c8e", "gcp/b runner-5f1d0c8e")
}

// cases.md T81, coalescing: what nobody began is not done twice.
func TestANewerEventTakesOverWhatIsStillQueuedAndWaitsForTheRest(t *testing.T) {
	w := newWorld(t, triggers(t))
	w.work(w.send("k1", fixture(t, "pipeline")).ID)
	w.set("gcp", "a", func(op *fleet.Operation) { op.Phase = fleet.PhaseDraining })
	newer := fixture(t, "pipeline", `"id": 3100`, `"id": 3101`, sha, strings.Repeat("b", 40))
	id := w.send("k2", newer).ID
	w.wantOutcome(w.work(id), fleet.DeliveryPending, "waits: gcp/a has an unfinished operation already")
	w.wantOperations("gcp/a runner-5f1d0c8e draining", "gcp/b runner-5f1d0c8e canceled", "gcp/b runner-bbbbbbbb")
	w.set("gcp", "a", finish)
	w.wantOutcome(w.work(id), fleet.DeliveryAsked, "")
	w.wantOperations("gcp/a runner-5f1d0c8e succeeded", "gcp/b runner-5f1d0c8e canceled", "gcp/b runner-bbbbbbbb", "gcp/a runner-bbbbbbbb")
}

func TestWhatAPersonAskedForIsNotTakenOver(t *testing.T) {
	w := newWorld(t, triggers(t))
	_, err := w.worker.Control.Ask(t.Context(), control.Intent{Fleet: "gcp", VMs: []string{"a"}, Kind: fleet.KindRecreate, Image: "mine", By: fleet.Actor{Name: "ann", From: "cli"}})
	w.must(err)
	id := w.send("k", fixture(t, "pipeline")).ID
	w.wantOutcome(w.work(id), fleet.DeliveryPending, "waits: gcp/a has an unfinished operation")
	w.wantOperations("gcp/a mine", "gcp/b runner-5f1d0c8e")
	w.advance(24*time.Hour + time.Second)
	w.wantOutcome(w.work(id), fleet.DeliveryRefused, "given up at 2026-12-01T12:00:00Z: waits: gcp/a has an unfinished operation")
}

func TestWhileANewerMergeWaitsAnOlderOneIsOver(t *testing.T) {
	w := newWorld(t, triggers(t))
	old := w.send("k1", fixture(t, "merge_request")).ID
	w.work(old)
	w.advance(time.Minute)
	const updated = `"updated_at": "2026-11-30T11:40:13Z"`
	newer := w.send("k2", fixture(t, "merge_request", "aa11bb22", "bbbbbbbb", updated, `"updated_at": "2026-11-30T12:00:30Z"`)).ID
	w.images.put("merged-aa11bb22")
	w.wantOutcome(w.work(old), fleet.DeliverySuperseded, newer)
	w.wantOutcome(w.work(newer), fleet.DeliveryPending, "merged-bbbbbbbb")
	w.wantOperations()
}

func TestAVMThatIsNotThereAnyMoreIsToldAndTheOthersAreRecreated(t *testing.T) {
	list := triggers(t)
	list[0].VMs = []string{"a", "gone", "b"}
	w := newWorld(t, list)
	d := w.work(w.send("k", fixture(t, "pipeline")).ID)
	w.wantOutcome(d, fleet.DeliveryRefused, `there is no VM "gone" in fleet gcp`)
	w.wantOperations("gcp/a runner-5f1d0c8e", "gcp/b runner-5f1d0c8e")
}

func TestAnImagesNameThatCannotBeMadeIsToldAtOnce(t *testing.T) {
	w := newWorld(t, triggers(t))
	d := w.send("k", fixture(t, "tag_push", "refs/tags/v1.4.0", "refs/tags/v1;reboot"))
	w.wantOutcome(d, fleet.DeliveryRefused, `the image's name would be "runner-v1;reboot"`)
	if len(w.woken) > 0 || w.counted["tag accepted"] != 1 {
		t.Errorf("woken %v, counted %v", w.woken, w.counted)
	}
}

// cases.md T82: cut off anywhere and begun again, each VM is asked for once.
// The matrix cuts before and after each call of the store and of control.
func TestWorkThatIsCutOffAnywhereIsDoneOnce(t *testing.T) {
	for cut := 0; ; cut++ {
		w := newWorld(t, triggers(t))
		id := w.send("k", fixture(t, "pipeline")).ID
		scissors := &scissors{left: cut}
		cutting := &hooks.Worker{
			Store: cutStore{w.store, scissors}, Control: cutControl{w.worker.Control, scissors},
			Images: w.images, Clock: w, Log: w.worker.Log,
		}
		_, done, err := cutting.LookDelivery(t.Context(), id)
		if err == nil {
			if !done || cut < 6 {
				t.Fatalf("only %d calls; done %t", cut, done)
			}
			return
		}
		w.wantOutcome(w.work(id), fleet.DeliveryAsked, "")
		w.wantOperations("gcp/a runner-5f1d0c8e", "gcp/b runner-5f1d0c8e")
	}
}

// scissors cut after so many calls; from then on everything fails, as for a
// process that is gone.
type scissors struct{ left int }

var errCut = errors.New("cut off")

func (s *scissors) cut() error {
	if s.left--; s.left < 0 {
		return errCut
	}
	return nil
}

// around cuts before the act, or after it.
func around(s *scissors, act func() error) error {
	return errors.Join(s.cut(), func() error {
		if s.left < 0 {
			return nil
		}
		return act()
	}(), s.cut())
}

type cutStore struct {
	hooks.Store
	*scissors
}

func (s cutStore) UpdateDelivery(ctx context.Context, d *fleet.Delivery) error {
	return around(s.scissors, func() error { return s.Store.UpdateDelivery(ctx, d) })
}

type cutControl struct {
	hooks.Control
	*scissors
}

func (c cutControl) Ask(ctx context.Context, in control.Intent) (answers []control.Answer, err error) {
	err = around(c.scissors, func() error {
		answers, err = c.Control.Ask(ctx, in)
		return err
	})
	return answers, err
}
