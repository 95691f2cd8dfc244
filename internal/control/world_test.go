package control_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// world is a Control over a real store, with a clock that stands still.
type world struct {
	*control.Control
	t     *testing.T
	store *store.Store
	now   time.Time
	woken []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "sluice.db"), Clock: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w.store = s
	w.Control = control.New(control.Options{
		Fleets: map[string]fleet.Spec{
			"gcp-shared": {Name: "gcp-shared", VMs: []string{"runner-01", "runner-02"}, HasGitLab: true, Drain: fleet.DefaultDrainPolicy()},
			"blind":      {Name: "blind", VMs: []string{"x"}, Drain: fleet.DefaultDrainPolicy()},
		},
		Store: s, Waker: w, Clock: w, Log: slog.New(slog.DiscardHandler),
	})
	return w
}

// Now implements the clocks.
func (w *world) Now() time.Time { return w.now }

// Wake implements control.Waker.
func (w *world) Wake(_ context.Context, id string) error {
	w.woken = append(w.woken, id)
	return nil
}

// asked asks for a recreate and yields its id.
func (w *world) asked(vm string) string {
	w.t.Helper()
	answers, err := w.Ask(w.t.Context(), recreate(vm))
	if err != nil {
		w.t.Fatal(err)
	}
	return answers[0].Operation.ID
}

// set changes a stored operation as the engine would.
func (w *world) set(id string, change func(*fleet.Operation)) {
	w.t.Helper()
	op, err := w.store.Operation(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	change(op)
	if err := w.store.UpdateOperation(w.t.Context(), op, nil, nil, nil); err != nil {
		w.t.Fatal(err)
	}
}
