package cli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// tale is a world in which one operation is asked for, and what is done to it
// meanwhile; the operation is shown at each of the moments.
type tale struct {
	kind    fleet.Kind
	scene   func(*enginetest.World)
	moments []moment
}

type moment struct {
	after time.Duration // since the one before
	then  func(*enginetest.World)
}

func nothing(*enginetest.World) {}

// Somebody who knows GitLab but not Sluice reads `op show` of a drain that did
// not go by itself: the real engine lived it, in a small world with a fixed
// clock, and the real API and command tell it.
func TestOpShowTellsTheStory(t *testing.T) {
	for name, told := range map[string]tale{
		"overrun": {
			kind:    fleet.KindRecreate,
			scene:   func(w *enginetest.World) { w.Job("runner-01", 42, time.Hour) },
			moments: []moment{{5 * time.Minute, nothing}, {time.Hour, nothing}},
		},
		"orphan": {
			kind: fleet.KindRecreate,
			scene: func(w *enginetest.World) {
				w.Fences["stop"] = func() {
					w.Orphan("runner-01", fleet.Job{ID: 57, URL: w.JobURL(57), StartedAt: w.Now()})
				}
			},
			moments: []moment{{5 * time.Second, nothing}, {40 * time.Second, func(w *enginetest.World) { w.VMs[0].Orphans = nil }}, {time.Hour, nothing}},
		},
		"recovered": {
			kind: fleet.KindRecreate,
			scene: func(w *enginetest.World) {
				w.Spec.HasWriteToken, w.Spec.Recovery.Orphans = true, true
				w.Fences["stop"] = func() {
					w.Orphan("runner-01", fleet.Job{ID: 57, URL: w.JobURL(57), StartedAt: w.Now()})
					w.Lost[57].Graceful = true
				}
			},
			moments: []moment{{5 * time.Second, nothing}, {time.Hour, nothing}},
		},
		"unreachable": {
			kind: fleet.KindRecreate,
			scene: func(w *enginetest.World) {
				w.Job("runner-01", 42, 8*time.Minute)
			},
			moments: []moment{
				{2 * time.Minute, func(w *enginetest.World) { w.VMs[0].Cutoff = true }},
				{5 * time.Minute, nothing},
				{8 * time.Minute, func(w *enginetest.World) { w.VMs[0].Cutoff = false }},
				{time.Hour, nothing},
			},
		},
		"abort": {
			kind: fleet.KindRecreate,
			scene: func(w *enginetest.World) {
				w.Spec.Drain.OnOverrun = fleet.OverrunAbort
				w.Job("runner-01", 42, 15*time.Minute)
			},
			moments: []moment{{5 * time.Minute, nothing}, {6 * time.Minute, nothing}, {time.Hour, nothing}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkGolden(t, filepath.Join("testdata", "golden", "show_"+name+".txt"), told.tell(t))
		})
	}
}

func (told tale) tell(t *testing.T) string {
	t.Helper()
	w := enginetest.New("runner-01", "runner-02")
	told.scene(w)
	id := w.Ask(told.kind, "runner-01")
	var page strings.Builder
	for _, m := range told.moments {
		w.Run(m.after)
		fmt.Fprintf(&page, "==== at %s: sluice op show %s\n%s\n", w.Now().Format(clockFormat), id, shown(t, w, id))
		m.then(w)
	}
	return page.String()
}

// shown is what the command prints of an operation at this moment of a world.
func shown(t *testing.T, w *enginetest.World, id string) string {
	t.Helper()
	tokens, err := access.NewTokens([]access.Token{{Name: "reader", SHA256: access.Hash("sluice_reader")}}, w)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Options{
		Store: stored(t, w, id), Tokens: tokens, Clock: w, Version: "test", Log: slog.New(slog.DiscardHandler),
	}))
	defer server.Close()
	var out, trouble bytes.Buffer
	status := Main(t.Context(), Env{
		Args: []string{"op", "show", id, "--server", server.URL}, Stdout: &out, Stderr: &trouble, Now: w.Now,
		Getenv: func(name string) string { return map[string]string{"SLUICE_TOKEN": "sluice_reader"}[name] },
	})
	if status != ExitDone {
		t.Fatalf("exit %d: %s", status, trouble.String())
	}
	return out.String()
}

// stored is what a world has committed of an operation, in a real database.
func stored(t *testing.T, w *enginetest.World, id string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "sluice.db"), Clock: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	op := w.Op(id)
	asked := fleet.Operation{
		ID: id, Fleet: op.Fleet, VM: op.VM, Kind: op.Kind, Phase: fleet.PhaseQueued, Request: op.Request,
		CreatedAt: op.CreatedAt, UpdatedAt: op.CreatedAt, PhaseSince: op.CreatedAt,
	}
	if _, err := s.Insert(t.Context(), []fleet.Operation{asked}, control.Key{}, nil); err != nil {
		t.Fatal(err)
	}
	op.Revision = 0
	if err := s.UpdateOperation(t.Context(), op, w.Store.Facts, nil, choresOf(w, id)); err != nil {
		t.Fatal(err)
	}
	return s
}

func choresOf(w *enginetest.World, id string) []fleet.Chore {
	var list []fleet.Chore
	for _, kind := range []fleet.ChoreKind{fleet.ChoreOrphanWatch, fleet.ChoreDeregister} {
		if c, err := w.Store.Chore(context.Background(), id+"-"+string(kind)); err == nil {
			list = append(list, *c)
		}
	}
	return list
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: write it with -update, and read it", err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is shown now; -update writes it, read it then:\n%s", path, got)
	}
}
