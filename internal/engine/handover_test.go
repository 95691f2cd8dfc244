package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// What one step hands on to the next is of a moment: the provider was asked
// ahead, then the commit took seconds, and meanwhile the image went away.
func TestWhatTheProviderSaidSecondsAgoDecidesNoDelete(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, time.Minute)
	id := w.Ask(fleet.KindRecreate, "a")
	late := false
	w.Points.At = func(string) {
		if w.Calls["check"] == 1 && !late { // asked ahead; the next thing is the commit
			late = true
			w.Advance(2 * time.Second)
			w.Refuse["check"] = []error{fleet.Errorf(fleet.CodeImageMissing, "image x was deleted").WithHint("build it")}
		}
	}
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "image x was deleted")
	if !late || w.Calls["delete"] != 0 || !w.VM("a").Serving() {
		t.Errorf("late: %t, %d deletes, or the VM does not serve\n%s", late, w.Calls["delete"], w.Story())
	}
}

// The reading that came with the end of the process spares a look, and the
// provider's answers a second round, while they are fresh.
func TestTheHandoverSparesCalls(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.Job("a", 1, 5*time.Second) // within one hold
	id := w.Ask(fleet.KindRecreate, "a")
	looks := 0
	w.Fences["delete"] = func() { looks = w.Calls["look"] }
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if w.Calls["await"] != 1 || looks != 2 || w.Calls["check"] != 1 {
		t.Errorf("%d holds, %d looks, %d checks; want 1, one look before the stop and one before the hold, 1", w.Calls["await"], looks, w.Calls["check"])
	}
}
