package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The job came in the instant of the stop, no record has it as GitLab was down,
// and it went with its VM. The provider has no room for the next one for hours: who
// runs the job is told now, not when there is a VM again.
func TestACutJobIsToldThoughTheCreateIsStuck(t *testing.T) {
	w := tracedWorld()
	vm := w.VM("a")
	w.Fences["stop"] = func() {
		w.Job("a", 42, 10*time.Hour)
		lose(w, vm)
	}
	refuse(w, "create", fleet.CodeUnavailable)
	id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Unreachable = fleet.UnreachableProceed })
	w.Run(10 * time.Second)
	vm.Cutoff, w.GitLabDown = true, true
	for w.Op(id).Phase != fleet.PhaseCreating {
		w.Run(time.Second)
	}
	vm.Busy, w.GitLabDown = 0, false
	w.Run(5 * time.Minute)
	op := w.Op(id)
	if op.Phase != fleet.PhaseCreating || len(op.CutJobs) != 0 || strings.Count(w.Story(), toldAsCut) != 1 {
		t.Errorf("%s, recorded as cut %v\n%s", op.Phase, op.CutJobs, w.Story())
	}
}
