package queue_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/engine/queue"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// clock is the real one: River has no other.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

// looker is an engine that does what the test says and counts.
type looker struct {
	mu     sync.Mutex
	looks  map[string][]time.Time
	sweeps int
	answer func(ctx context.Context, id string, n int) (time.Duration, bool, error) // n counts from 1
}

func newLooker(answer func(ctx context.Context, id string, n int) (time.Duration, bool, error)) *looker {
	return &looker{looks: map[string][]time.Time{}, answer: answer}
}

func (l *looker) Look(ctx context.Context, id string) (time.Duration, bool, error) {
	l.mu.Lock()
	l.looks[id] = append(l.looks[id], time.Now())
	n := len(l.looks[id])
	l.mu.Unlock()
	return l.answer(ctx, id, n)
}

func (l *looker) LookChore(ctx context.Context, id string) (time.Duration, bool, error) {
	return l.Look(ctx, id)
}

func (l *looker) Sweep(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweeps++
	return nil
}

func (l *looker) count(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.looks[id])
}

func (l *looker) at(id string, n int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks[id][n-1]
}

func (l *looker) swept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sweeps
}

// forever waits for an hour at each look.
func forever(context.Context, string, int) (time.Duration, bool, error) {
	return time.Hour, false, nil
}

// openStore opens a journal that the test's end closes, after the queue.
func openStore(t testing.TB, path string) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), store.Options{Path: path, Clock: clock{}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func freshStore(t testing.TB) *store.Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
}

// ask stores n operations on VMs of their own and yields their ids.
func ask(t testing.TB, s *store.Store, names ...string) []string {
	t.Helper()
	ops := make([]fleet.Operation, len(names))
	for i, name := range names {
		ops[i] = fleet.Operation{
			ID: "op-" + name, Fleet: "f", VM: name, Kind: fleet.KindDrain, Phase: fleet.PhaseQueued, CreatedAt: time.Now(),
		}
	}
	_, err := s.Insert(context.Background(), ops, control.Key{}, nil)
	must(t, err)
	ids := make([]string, len(names))
	for i := range ops {
		ids[i] = ops[i].ID
	}
	return ids
}

// addChore gives an operation a chore and yields its id.
func addChore(t testing.TB, s *store.Store, operation string) string {
	t.Helper()
	op, err := s.Operation(context.Background(), operation)
	must(t, err)
	chore := fleet.Chore{ID: "chore-of-" + operation, Operation: operation, State: []byte("{}")}
	must(t, s.UpdateOperation(context.Background(), op, nil, nil, []fleet.Chore{chore}))
	return chore.ID
}

func newQueue(t testing.TB, s *store.Store, l queue.Looker, only func(string) bool) *queue.Queue {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	if t, ok := t.(*testing.T); ok {
		log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	q, err := queue.New(context.Background(), queue.Options{DB: s.DB(), Source: s, Looker: l, Clock: clock{}, Log: log, Only: only})
	must(t, err)
	return q
}

// start starts a queue that the test's end stops.
func start(t testing.TB, s *store.Store, l queue.Looker, only func(string) bool) *queue.Queue {
	t.Helper()
	q := newQueue(t, s, l, only)
	must(t, q.Start(context.Background()))
	t.Cleanup(func() { stop(t, q) })
	return q
}

func stop(t testing.TB, q *queue.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	must(t, q.Stop(ctx))
}

// eventually polls for what must come true.
func eventually(t testing.TB, what string, within time.Duration, true func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !true() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
}

// jobs counts the queue's jobs in a state.
func jobs(t testing.TB, s *store.Store, where string) (n int) {
	t.Helper()
	must(t, s.DB().QueryRowContext(context.Background(), fmt.Sprintf("select count(*) from river_job where %s", where)).Scan(&n))
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
