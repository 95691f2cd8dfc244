package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// hanging is a GitLab that answers nothing: each request ends by the client's
// own limit of 10 s, or with the step.
type hanging struct {
	engine.GitLab
	w  *enginetest.World
	on *bool
}

func (h hanging) hang(ctx context.Context, n int) {
	began := time.Now()
	for range n {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
	}
	h.w.Advance(time.Since(began))
}

func (h hanging) Read(ctx context.Context, about fleet.Subject, after time.Time) *fleet.GitLabReading {
	if !*h.on {
		return h.GitLab.Read(ctx, about, after)
	}
	h.hang(ctx, 1)
	return &fleet.GitLabReading{Subject: about, TakenAt: h.w.Now(), Unknown: "GitLab did not answer"}
}

func (h hanging) Managers(ctx context.Context) ([]fleet.Manager, time.Time, error) {
	if !*h.on {
		return h.GitLab.Managers(ctx)
	}
	h.hang(ctx, 1)
	return nil, time.Time{}, fleet.Errorf(fleet.CodeUnavailable, "GitLab did not answer")
}

// Promise 9, design.md section 5 ("the waiver lets the delete go on in any
// case"): neither a host nor a GitLab that hang hold up what a person waived.
func TestASkippedDrainGoesOnWhileGitLabAndTheHostHang(t *testing.T) {
	for name, hang := range map[string][]string{
		"the whole host": {"look", "glance"},
		"podman alone":   {"look"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				on := false
				w := enginetest.New("a")
				w.Bubble = time.Now
				w.With = func(f *engine.Fleet) { f.GitLab = hanging{f.GitLab, w, &on} }
				w.Job("a", 42, 10*time.Hour)
				id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Cap = 8 * time.Hour })
				w.Run(time.Minute)
				on, w.Hang = true, map[string]bool{}
				for _, call := range hang {
					w.Hang[call] = true
				}
				if err := skipDrain(t, w, id); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					lookWhile(t, w, id, fleet.PhaseDraining, 100)
					lookWhile(t, w, id, fleet.PhaseDeleting, 100)
				}
				if op := w.Op(id); op.Delete.CalledAt.IsZero() {
					t.Errorf("at %s it is %s and waits for %q: no delete was called\n%s", w.Now(), op.Phase, op.Waiting, w.Story())
				}
			})
		})
	}
}
