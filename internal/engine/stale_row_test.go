package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// outOfDate are worlds in which a person has made a anew: the row knows nothing
// of the VM that is there.
func outOfDate() map[string]func(*enginetest.World) {
	return map[string]func(*enginetest.World){
		"it says Missing": func(w *enginetest.World) {
			w.Ask(fleet.KindDelete, "a")
			w.Run(time.Hour)
			w.Twin("a", "")
		},
		"it knows an older instance": func(w *enginetest.World) {
			w.Ask(fleet.KindRecreate, "a")
			w.Run(time.Hour)
			w.Replace("a")
		},
	}
}

// What the row says of an older instance is not about this one: nobody has seen
// it go, and its job is not cut.
func TestALiveJobIsNotCanceledWhereTheVMsRowIsOutOfDate(t *testing.T) {
	for name, scene := range outOfDate() {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			w.Spec.HasWriteToken, w.Spec.Recovery = true, fleet.RecoveryPolicy{Orphans: true, CutJobs: true}
			w.With = func(f *engine.Fleet) { f.GitLab = traced{f.GitLab} }
			scene(w)
			row, err := w.Store.VM(t.Context(), fleet.Ref{Fleet: enginetest.Fleet, VM: "a"})
			if err != nil || row.Instance == w.VM("a").ID && !row.Missing {
				t.Fatalf("the row is up to date: %+v, %v", row, err)
			}
			w.Refuse["delete"] = []error{fleet.Errorf(fleet.CodeForbidden, "delete is not granted").WithHint("grant it")}
			withoutSudo(w)
			w.Orphan("a", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
			id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
			goesOn(t, w, id)
			if row, err = w.Store.VM(t.Context(), w.Op(id).Ref()); err != nil || row.Instance != w.VM("a").ID || row.Missing {
				t.Errorf("the row is out of date still: %+v, %v", row, err)
			}
		})
	}
}
