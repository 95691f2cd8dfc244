package store_test

import (
	"path/filepath"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/store"
	"gitlab.com/sluice-runners/sluice/internal/store/storetest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) storetest.Store {
		return openStore(t, filepath.Join(t.TempDir(), "sluice.db"), clock)
	})
}

// openStore opens a journal that the test's end closes.
func openStore(t testing.TB, path string, clock store.Clock) *store.Store {
	t.Helper()
	if clock == nil {
		clock = storetest.NewClock()
	}
	s, err := store.Open(t.Context(), store.Options{Path: path, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
