package hooks_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

// done ends what is under way on the VMs of aws.
func (w *world) done() {
	w.Helper()
	for _, vm := range []string{"x", "y", "z"} {
		w.set("aws", vm, finish)
	}
}

// People date releases, years ahead if they like. What a release of today comes
// to must not hang on that.
func TestAReleaseDatedAheadHoldsUpNoLaterOne(t *testing.T) {
	const (
		id       = `"id": 77,`
		created  = `"created_at": "2026-11-30 11:59:00 UTC"`
		released = `"released_at": "2026-11-30 11:59:00 UTC"`
	)
	for name, change := range map[string][2][]string{
		"with GitLab's number": {
			{released, strings.Replace(released, "2026", "2027", 1)},
			{released, strings.Replace(released, "11-30", "12-30", 1), id, `"id": 78,`, "v1.4.0", "v1.5.0"},
		},
		"without a number, and made by a clock ahead": {
			{id, "", created, strings.Replace(created, "2026", "2027", 1)},
			{id, "", created, strings.Replace(created, "11-30", "12-30", 1), "v1.4.0", "v1.5.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, triggers(t))
			w.work(w.send("k1", fixture(t, "release", change[0]...)).ID)
			w.done()
			w.advance(30 * 24 * time.Hour)
			w.wantOutcome(w.work(w.send("k2", fixture(t, "release", change[1]...)).ID), fleet.DeliveryAsked, "runner-v1.5.0")
		})
	}
}

func TestTheReleaseThatWasMadeLaterCountsHoweverItComes(t *testing.T) {
	w := newWorld(t, triggers(t))
	w.work(w.send("k1", fixture(t, "release", `"id": 77,`, `"id": 78,`)).ID)
	w.advance(time.Millisecond)
	w.wantOutcome(w.work(w.send("k2", fixture(t, "release", "v1.4.0", "v1.3.9")).ID), fleet.DeliverySuperseded, "newer state")
}

// A push carries no time, and our clock may be set back.
func TestAPushCountsThoughTheClockWasSetBack(t *testing.T) {
	w := newWorld(t, triggers(t))
	w.work(w.send("k1", fixture(t, "push")).ID)
	w.done()
	w.advance(-time.Minute)
	w.wantOutcome(w.work(w.send("k2", fixture(t, "push", sha, strings.Repeat("b", 40))).ID), fleet.DeliveryAsked, "")
}

// GitLab writes seconds. What comes later in one of them counts, whatever the
// fractions of ours are.
func TestOfTwoMergesInOneSecondTheLaterCounts(t *testing.T) {
	w := newWorld(t, triggers(t))
	w.advance(900 * time.Millisecond)
	first := w.send("k1", fixture(t, "merge_request"))
	w.advance(300 * time.Millisecond)
	second := w.send("k2", fixture(t, "merge_request", "aa11bb22", "bbbbbbbb"))
	w.wantOutcome(w.work(second.ID), fleet.DeliveryPending, "merged-bbbbbbbb")
	w.wantOutcome(w.work(first.ID), fleet.DeliverySuperseded, second.ID)
}

// main goes from A to B, back to A, and to B again: the third push has the body
// of the first.
func TestAStateThatAProjectComesToAgainIsRecreatedAgain(t *testing.T) {
	const before = "0f0e0d0c0b0a09080706050403020100ffeeddcc"
	there := fixture(t, "push")
	back := []byte(strings.NewReplacer(
		`"before": "`+before, `"before": "`+sha, `"after": "`+sha, `"after": "`+before).Replace(string(there)))
	for _, pause := range []time.Duration{time.Second, time.Hour} {
		w := newWorld(t, triggers(t))
		for i, body := range [][]byte{there, back, there} {
			w.wantOutcome(w.work(w.send("k"+string(rune('1'+i)), body).ID), fleet.DeliveryAsked, "")
			w.done()
			w.advance(pause)
		}
		if got := w.operations(); len(got) != 9 {
			t.Errorf("a push every %s: %d operations, want 9: %q", pause, len(got), got)
		}
	}
}

// A project's webhook and its group's send the same push, each under a key of
// its own, which both keep when a person sends it again.
func TestTheSameEventOfTwoWebhooksIsOneHoweverLateItIsSentAgain(t *testing.T) {
	w := newWorld(t, triggers(t))
	body := fixture(t, "push")
	first := w.work(w.send("project", body).ID)
	w.done()
	w.advance(5 * time.Second)
	for _, key := range []string{"group", "project", "group"} {
		if again := w.send(key, body); again.ID != first.ID {
			t.Errorf("%s: %+v", key, again)
		}
		w.advance(24 * time.Hour)
	}
	if got := w.operations(); len(got) != 3 {
		t.Errorf("%q", got)
	}
}

func TestOneThatIsRefusedOnReceiptDoesNotEndTheOneThatWaits(t *testing.T) {
	w := newWorld(t, []hooks.Trigger{{
		Name: "tag", On: hooks.KindTag, Project: project, Fleet: "aws", VMs: []string{"x"},
		Image: image(t, "tag", "runner-{{ .Tag }}"), ImageWait: time.Hour,
	}})
	good := w.send("k1", fixture(t, "tag_push"))
	w.wantOutcome(w.work(good.ID), fleet.DeliveryPending, "waits for the image")
	w.advance(time.Second)
	w.wantOutcome(w.send("k2", fixture(t, "tag_push", "v1.4.0", "v1.5.0(x)")), fleet.DeliveryRefused, "the image's name")
	w.images.put("runner-v1.4.0")
	w.wantOutcome(w.work(good.ID), fleet.DeliveryAsked, "")
	w.wantOperations("aws/x runner-v1.4.0")
}

// The number of a pipeline says nothing about that of a release.
func TestATriggerThatIsPutOnAnotherKindBeginsAnew(t *testing.T) {
	trigger := hooks.Trigger{Name: "t", On: hooks.KindPipeline, Project: project, Status: "success", Fleet: "aws"}
	w := newWorld(t, []hooks.Trigger{trigger})
	w.work(w.send("k1", fixture(t, "pipeline")).ID)
	w.done()
	trigger.On, trigger.Status = hooks.KindRelease, ""
	w.receiver.Triggers = []hooks.Trigger{trigger}
	w.wantOutcome(w.work(w.send("k2", fixture(t, "release")).ID), fleet.DeliveryAsked, "")
}
