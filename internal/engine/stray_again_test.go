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

// A second VM whose drain failed is stopped again: what the second stop loses is
// found, too.
func TestAnOrphanOfASecondVMsSecondStopIsToldOf(t *testing.T) {
	w := enginetest.New("a")
	_, twin := twinned(w)
	w.Refuse["stop"] = []error{fleet.Errorf(fleet.CodeForbidden, "sudo: a password is required")}
	once(w, "stop:before", func() bool { return len(w.Refuse["stop"]) == 0 }, func() {
		w.OrphanOn(twin, fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
	})
	w.Run(3 * time.Hour)
	if w.Lost[lostJob] == nil || twin.Gone.IsZero() || told(w, fleet.FactOrphan) != 1 {
		t.Errorf("told %d times, %+v\n%s", told(w, fleet.FactOrphan), w.Lost[lostJob], w.Story())
	}
	closed(t, w)
}

// Nobody sees the runner of a second VM end. That the kept one was created long
// before its job began says nothing about the job: it is judged when its VM is
// gone, and not called one that goes on.
func TestAJobOfASecondVMIsJudgedOnceThatIsGone(t *testing.T) {
	w := enginetest.New("a")
	w.Spec.HasWriteToken, w.Spec.Recovery = true, fleet.RecoveryPolicy{Orphans: true}
	w.Spec.Drain.Unreachable, w.Spec.Drain.ReachDeadline, w.Spec.GateOnline = fleet.UnreachableProceed, 5*time.Minute, 5*time.Minute
	w.BootDelay, w.DeleteDelay = time.Minute, time.Minute
	w.With = func(f *engine.Fleet) { f.GitLab = traced{f.GitLab} }
	id := w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase != fleet.PhaseVerifying {
		w.Run(time.Second)
	}
	w.Run(30 * time.Second)
	w.Twin("a", id)
	twin := w.VMs[len(w.VMs)-1]
	w.OrphanOn(twin, fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
	once(w, "stop:after", func() bool { return twin.DropIn.Present }, func() { twin.Cutoff = true })
	var gone bool
	w.Fences["cancel"] = func() { gone = len(w.Living("a")) == 1 }
	w.Run(3 * time.Hour)
	if strings.Contains(w.Story(), " goes on on ") || w.Lost[lostJob].Status != "canceled" || !gone {
		t.Errorf("the second VM was gone: %t; %+v\n%s", gone, w.Lost[lostJob], w.Story())
	}
	closed(t, w)
}

// Its fault may last for days: it is asked about less and less often, and yet
// soon after it was mended.
func TestASecondVMThatIsRefusedRestsLongerEachTime(t *testing.T) {
	w := enginetest.New("a")
	_, twin := twinned(w)
	twin.Unregisters = true
	w.Run(75 * time.Minute)
	var at []time.Time
	for _, f := range w.Store.Facts {
		if strings.Contains(f.Text, "the second instance "+twin.ID+" of f/a is still there") {
			at = append(at, f.At)
		}
	}
	var rests []time.Duration
	for i := 1; i < len(at); i++ {
		rests = append(rests, at[i].Sub(at[i-1]).Round(time.Minute))
	}
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute, 15 * time.Minute}
	if !slices.Equal(rests, want) {
		t.Errorf("it rests %v, want %v\n%s", rests, want, w.Story())
	}
	twin.Unregisters = false
	w.Run(16 * time.Minute)
	if twin.Gone.IsZero() {
		t.Errorf("mended, it is there still\n%s", w.Story())
	}
}
