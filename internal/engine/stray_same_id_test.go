package engine_test

import (
	"slices"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Made from an image with a baked-in machine-id, the kept VM and a second one have
// one system_id. A job that the kept one takes while the second is drained goes on
// when that is gone.
func TestALiveJobOfTheKeptVMIsNotToldAsCutWithASecondOneOfItsSystemID(t *testing.T) {
	w := tracedWorld()
	w.SameSystemID = true
	id, twin := twinned(w)
	w.JobOn(twin.ID, 55, 2*time.Minute)
	for w.Op(id).Phase != fleet.PhaseSucceeded {
		w.Run(time.Second)
	}
	w.Run(30 * time.Second)
	kept := w.VMs[1]
	if !twin.DropIn.Present || !twin.Gone.IsZero() || kept.ID != w.Op(id).Create.New.Instance {
		t.Fatalf("%s is kept, or the second VM is not being drained\n%s", kept.ID, w.Story())
	}
	w.VMs = append(slices.Delete(w.VMs, 1, 2), kept) // the last to speak to GitLab as their one manager
	lose(w, kept)
	w.Run(time.Hour)
	if twin.Gone.IsZero() || w.Lost[lostJob] == nil || told(w, fleet.FactCut) != 0 || w.Meter.CutJobs != 0 {
		t.Errorf("the second VM is there: %t; told as cut %d times\n%s", twin.Gone.IsZero(), told(w, fleet.FactCut), w.Story())
	}
}
