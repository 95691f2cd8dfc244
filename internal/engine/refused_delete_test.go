package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// refusedDelete is a world in which a's drain is skipped and its delete refused by
// the provider. Nothing has looked at a before, so that its row is empty; the
// write token may cancel what was cut.
func refusedDelete() (w *enginetest.World, id string) {
	w = enginetest.New("a")
	w.Spec.HasWriteToken, w.Spec.Recovery = true, fleet.RecoveryPolicy{Orphans: true, CutJobs: true}
	w.With = func(f *engine.Fleet) { f.GitLab = traced{f.GitLab} }
	w.Refuse["delete"] = []error{fleet.Errorf(fleet.CodeForbidden, "delete is not granted").WithHint("grant it")}
	return w, w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
}

// withoutSudo makes the host refuse every stop.
func withoutSudo(w *enginetest.World) { refuse(w, "stop", fleet.CodeForbidden) }

// goesOn fails unless the VM is there still, the operation has failed, and the
// lost job, which runs on it, was neither canceled nor called cut by a watch.
func goesOn(t *testing.T, w *enginetest.World, id string) {
	t.Helper()
	w.Run(3 * time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "delete is not granted")
	if l := w.Lost[lostJob]; l == nil || l.Cancels != 0 || l.Retries != 0 || w.Calls["cancel"] != 0 {
		t.Errorf("a live job was canceled: %+v\n%s", l, w.Story())
	}
	if strings.Contains(w.Story(), "is still shown running though its runner on f/a has ended") {
		t.Errorf("a live job is told as cut\n%s", w.Story())
	}
	closed(t, w)
}

// Nobody has seen the VM go: its job is not cut, and what was recorded for the
// delete is taken back. Seed 272016 of the worlds.
func TestALiveJobIsNotCanceledWhereTheProviderRefusedTheDelete(t *testing.T) {
	w, id := refusedDelete()
	withoutSudo(w)
	w.Orphan("a", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
	goesOn(t, w, id)
	if told(w, fleet.FactCut) != 1 || len(w.Op(id).CutJobs) != 0 {
		t.Errorf("told as cut %d times, recorded %v\n%s", told(w, fleet.FactCut), w.Op(id).CutJobs, w.Story())
	}
	says(t, w, "[note] job 99 (https://gitlab.example/acme/app/-/jobs/99) on f/a was not cut after all")
}

// What the runner was told to end has ended, delete or not.
func TestAJobThatWasToldToEndStaysRecordedThoughTheDeleteIsRefused(t *testing.T) {
	w, id := refusedDelete()
	w.Job("a", 42, time.Hour)
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "delete is not granted")
	if !slices.Equal(w.Cut, []int64{42}) || strings.Contains(w.Story(), "after all") {
		t.Errorf("cut %v\n%s", w.Cut, w.Story())
	}
	recorded(t, w, id, 42)
}

// A stop that the host has refused was not given: the runner takes jobs before
// and after it. Seed 325303 of the worlds.
func TestARefusedStopBeforeASkippedDrainsDeleteDoesNotCountAsGiven(t *testing.T) {
	w, id := refusedDelete()
	withoutSudo(w)
	w.Fences["stop"] = func() {
		w.Orphan("a", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
	}
	goesOn(t, w, id)
	if op := w.Op(id); !op.Drain.StoppedAt.IsZero() {
		t.Errorf("stopped at %s\n%s", op.Drain.StoppedAt, w.Story())
	}
}

// The job was cut by a reboot after the stop, and the runner is up again. Though
// the row knows of no VM, its host is looked at before anything is canceled: that
// shows a runner, and it is left to a person. Seed 272016 of the worlds.
func TestACutJobOfAVMWithAnEmptyRowIsLeftWhereItsRunnerIsUpAgain(t *testing.T) {
	w, id := refusedDelete()
	w.Orphan("a", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
	w.Job("a", 42, time.Hour)
	w.Fences["end"] = func() {
		w.Reboot("a")
		withoutSudo(w) // so that intake stays open
	}
	w.Run(3 * time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "delete is not granted")
	if !w.VM("a").Serving() || w.Op(id).Drain.StoppedAt.IsZero() {
		t.Fatalf("it was not stopped, or does not serve\n%s", w.Story())
	}
	if w.Calls["cancel"] != 0 || told(w, fleet.FactCut) != 1 {
		t.Errorf("%d cancels, told %d times\n%s", w.Calls["cancel"], told(w, fleet.FactCut), w.Story())
	}
	closed(t, w)
}
