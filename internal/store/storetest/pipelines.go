package storetest

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func keyOfAnotherScope(_ *testing.T, w *world) {
	first := w.insert(control.Key{Scope: "project 1\n", Value: "k", Digest: "d"}, w.operation("a", fleet.KindRecreate))[0]
	w.finish(&first.Operation)
	other := w.insert(control.Key{Scope: "project 2\n", Value: "k", Digest: "e"}, w.operation("a", fleet.KindRecreate))[0]
	if !other.New || other.Operation.ID == first.Operation.ID {
		w.Fatalf("another project's key yields %+v", other)
	}
}

// end finishes an operation in a phase.
func (w *world) end(op fleet.Operation, phase fleet.Phase) {
	w.Helper()
	op.Phase, op.FinishedAt = phase, w.clock.Now()
	w.update(&op)
}

// threeOf asks for three VMs under a key and ends them: well, badly, not yet.
func (w *world) threeOf(key control.Key) []control.Inserted {
	w.Helper()
	first := w.insert(key, w.operation("a", fleet.KindRecreate), w.operation("b", fleet.KindRecreate), w.operation("c", fleet.KindRecreate))
	w.end(first[0].Operation, fleet.PhaseSucceeded)
	w.end(first[1].Operation, fleet.PhaseFailed)
	return first
}

func keyFromAnotherJob(_ *testing.T, w *world) {
	first := w.threeOf(control.Key{Value: "k", Digest: "d", Job: 1})
	// The order may differ: a job that runs on c asks for it last.
	again := w.insert(control.Key{Value: "k", Digest: "d", Job: 2},
		w.operation("b", fleet.KindRecreate), w.operation("c", fleet.KindRecreate), w.operation("a", fleet.KindRecreate))
	if again[0].Operation.ID == first[1].Operation.ID || !again[0].New {
		w.Errorf("what failed was not asked for anew: %+v", again[0])
	}
	if again[1].Operation.ID != first[2].Operation.ID || again[1].New {
		w.Errorf("what runs was asked for anew: %+v", again[1])
	}
	if again[2].Operation.ID != first[0].Operation.ID || again[2].New || again[2].Operation.Phase != fleet.PhaseSucceeded {
		w.Errorf("what went well was asked for anew: %+v", again[2])
	}
	third := w.insert(control.Key{Value: "k", Digest: "d", Job: 2}, w.operation("a", fleet.KindRecreate), w.operation("b", fleet.KindRecreate), w.operation("c", fleet.KindRecreate))
	for _, got := range third {
		if got.Operation.VM == "b" && got.Operation.ID != again[0].Operation.ID {
			w.Errorf("the new answer was not remembered: %+v", got)
		}
	}
}

func keyFromTheSameJob(_ *testing.T, w *world) {
	first := w.threeOf(control.Key{Value: "k", Digest: "d", Job: 1})
	again := w.insert(control.Key{Value: "k", Digest: "d", Job: 1}, w.operation("a", fleet.KindRecreate), w.operation("b", fleet.KindRecreate), w.operation("c", fleet.KindRecreate))
	for i := range again {
		if again[i].Operation.ID != first[i].Operation.ID {
			w.Errorf("%s: %s, want %s", first[i].Operation.VM, again[i].Operation.ID, first[i].Operation.ID)
		}
	}
}

func idTokenServesOne(_ *testing.T, w *world) {
	until := w.clock.Now().Add(time.Hour)
	for _, c := range []struct{ issuer, id, holder, want string }{
		{"https://a", "1", "job 7", "job 7"},
		{"https://a", "1", "job 7", "job 7"},
		{"https://a", "1", "job 8", "job 7"},
		{"https://a", "2", "job 8", "job 8"},
		{"https://b", "1", "job 9", "job 9"},
	} {
		if got, err := w.BindIDToken(w.ctx(), c.issuer, c.id, c.holder, until); err != nil || got != c.want {
			w.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	w.clock.Advance(time.Hour)
	if got, err := w.BindIDToken(w.ctx(), "https://a", "1", "job 8", until.Add(time.Hour)); err != nil || got != "job 8" {
		w.Errorf("after its end: %q, %v", got, err)
	}
}

func followTokens(_ *testing.T, w *world) {
	w.must(w.SaveFollow(w.ctx(), "hash", []string{"op-1", "op-2"}, w.clock.Now().Add(time.Hour)))
	got, err := w.Followed(w.ctx(), "hash")
	w.must(err)
	w.same(got, []string{"op-1", "op-2"})
	_, err = w.Followed(w.ctx(), "other")
	w.mustFail(err, fleet.CodeNotFound)
	w.clock.Advance(time.Hour)
	_, err = w.Followed(w.ctx(), "hash")
	w.mustFail(err, fleet.CodeNotFound)
	w.must(w.SaveFollow(w.ctx(), "hash", []string{"op-3"}, w.clock.Now().Add(time.Hour))) // what is over makes room
}
