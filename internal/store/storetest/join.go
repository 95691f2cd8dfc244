package storetest

import (
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func whoAttaches(_ *testing.T, w *world) {
	first := w.ask("a", fleet.KindRecreate)
	attach := func(name, from string) {
		w.Helper()
		op := w.operation("a", fleet.KindRecreate)
		op.Request.By = fleet.Actor{Name: name, From: from}
		_, err := w.Insert(w.ctx(), []fleet.Operation{op}, control.Key{}, func(list []control.Inserted) error {
			list[0].Joined = true
			return nil
		})
		w.must(err)
	}
	attach("trigger:x", control.FromWebhook)
	if got := w.load(first.ID); got.Joined.Name != "" || got.Revision != first.Revision {
		w.Fatalf("a webhook is on it: %+v", got)
	}
	attach("ann", "cli")
	attach("ann", "cli")
	op := w.load(first.ID)
	if op.Joined.Name != "ann" || op.Revision != first.Revision+1 {
		w.Fatalf("%+v at revision %d", op.Joined, op.Revision)
	}
	op.Phase = fleet.PhaseDraining
	w.update(op)
	attach("bob", "cli")
	if got := w.load(first.ID); got.Joined.Name != "ann" || got.Revision != op.Revision {
		w.Fatalf("what is at work was moved: %+v at revision %d", got.Joined, got.Revision)
	}
	facts := w.facts(first.ID)
	if len(facts) != 4 {
		w.Fatalf("the journal: %+v", facts)
	}
	for i, word := range []string{"ann", "trigger:x from webhook too", "ann from cli too", "bob from cli too"} {
		if facts[i].Kind != fleet.FactAsked || !strings.Contains(facts[i].Text, word) {
			w.Errorf("fact %d: %+v, want %q", i, facts[i], word)
		}
	}
}
