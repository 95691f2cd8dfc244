package store_test

import (
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
	"gitlab.com/sluice-runners/sluice/internal/store/storetest"
)

func TestTheLastFactIsTheNewestWhoseverItIs(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Path: t.TempDir() + "/test.db", Clock: storetest.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if last, err := s.LastFact(t.Context()); err != nil || last != 0 {
		t.Errorf("an empty log ends at %d, %v", last, err)
	}
	if err := s.AppendFacts(t.Context(), []fleet.Fact{{Operation: "op-1"}, {Operation: "op-2"}, {}}); err != nil {
		t.Fatal(err)
	}
	all, err := s.Facts(t.Context(), 0, "", 0)
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	if last, err := s.LastFact(t.Context()); err != nil || last != all[2].ID {
		t.Errorf("it ends at %d, %v, want %d", last, err, all[2].ID)
	}
}
