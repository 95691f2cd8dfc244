package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// ended fails unless the operation ended in the phase with a message that says
// what and a hint that says what next.
func ended(t *testing.T, w *enginetest.World, id string, phase fleet.Phase, message string) *fleet.Operation {
	t.Helper()
	op := w.Op(id)
	if op.Phase != phase || !strings.Contains(op.ErrMessage, message) {
		t.Fatalf("%s: %q, want %s with %q\n%s", op.Phase, op.ErrMessage, phase, message, w.Story())
	}
	if phase == fleet.PhaseFailed && op.ErrHint == "" {
		t.Errorf("%q says not what to do next", op.ErrMessage)
	}
	return op
}

func cancel(t *testing.T, w *enginetest.World, id string) {
	t.Helper()
	op := w.Op(id)
	op.Canceled = true
	if err := w.Store.UpdateOperation(t.Context(), op, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// cases.md T108: preflight permissions and existence before draining.
func TestAnImageThatDoesNotExistIsFoundBeforeAnythingIsTouched(t *testing.T) {
	refusedInPreflight(t, "prepare", fleet.Errorf(fleet.CodeImageMissing, "image x does not exist").WithHint("build it"))
}

// refusedInPreflight has a port refuse and checks that the recreate fails with
// its words and that nothing was touched.
func refusedInPreflight(t *testing.T, call string, refusal *fleet.Error) {
	t.Helper()
	w := enginetest.New("a")
	w.Refuse[call] = []error{refusal}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, refusal.Message)
	if w.Calls["stop"] != 0 || !w.VM("a").Serving() {
		t.Error("something was touched")
	}
}

func TestAnImageThatWentAwayDuringTheDrainGivesIntakeBack(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, time.Minute)
	w.Refuse["check"] = []error{fleet.Errorf(fleet.CodeImageMissing, "image x was deleted").WithHint("build it")}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "image x was deleted")
	if w.Calls["delete"] != 0 || !w.VM("a").Serving() {
		t.Errorf("the VM was deleted or does not serve\n%s", w.Story())
	}
}

// cases.md T93, T97: stock-out is waited out, reported, and never forgotten.
func TestAStockoutAfterTheDeleteIsRetriedForHours(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	for range 100 {
		w.Refuse["create"] = append(w.Refuse["create"], fleet.Errorf(fleet.CodeStockout, "ZONE_RESOURCE_POOL_EXHAUSTED"))
	}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(5 * time.Hour)
	replaced(t, w, id, "a", old)
}

// cases.md T92: a 4xx is terminal, not retried for ten hours. After a delete
// it is held, and a corrected image goes on.
func TestAnInvalidRequestAfterTheDeleteIsHeldAndResumed(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.Refuse["create"] = []error{fleet.Errorf(fleet.CodeInvalid, "machine type x is unknown")}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	op := w.Op(id)
	if !op.Held || op.Phase != fleet.PhaseCreating || w.Calls["create"] != 1 {
		t.Fatalf("%s, held %t, %d calls\n%s", op.Phase, op.Held, w.Calls["create"], w.Story())
	}
	op.Held, op.Request.Image, op.Create.Prepared = false, "image-3", fleet.Prepared{}
	if err := w.Store.UpdateOperation(t.Context(), op, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if got := w.Op(id).Create.Prepared.Image; got != "image-3" {
		t.Errorf("created with image %s", got)
	}
}

func TestADefiniteRefusalOfTheDeleteOpensTheWayBack(t *testing.T) {
	w := enginetest.New("a")
	w.Refuse["delete"] = []error{fleet.Errorf(fleet.CodeForbidden, "deletion protection is on").WithHint("switch it off")}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "deletion protection")
	if !w.VM("a").Serving() {
		t.Errorf("intake was not restored\n%s", w.Story())
	}
}

// cases.md T43, T45, T62: a create that succeeds late makes no twin.
func TestASecondMachineThatCameLateIsDrainedAndDeleted(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	id := w.Ask(fleet.KindRecreate, "a")
	for range 200 {
		w.Run(time.Second)
		if w.Op(id).Phase == fleet.PhaseVerifying {
			break
		}
	}
	kept := w.Op(id).Create.New.Instance
	twin := w.Twin("a", id)
	w.JobOn(twin, 77, 2*time.Minute)
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if got := w.VM("a").ID; got != kept {
		t.Errorf("%s was kept, want the stored %s\n%s", got, kept, w.Story())
	}
}

// cases.md T6: a VM is taken by its identity, never by name or number.
func TestAVMReplacedBehindOurBackIsLeftAlone(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, 5*time.Minute)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Minute)
	w.Replace("a")
	other := w.VM("a").ID
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "replaced behind our back")
	if vm := w.VM("a"); vm == nil || vm.ID != other || !vm.Serving() {
		t.Errorf("the other incarnation was touched\n%s", w.Story())
	}
}

func TestAForeignDropInIsRefusedAndNamed(t *testing.T) {
	w := enginetest.New("a")
	w.VM("a").DropIn = fleet.DropIn{Present: true, Effective: true, Owner: "sluice-of-another-team", Operation: "op-x"}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "sluice-of-another-team")
	if w.Calls["stop"] != 0 {
		t.Error("a stop was sent")
	}
	old := w.VM("a").ID
	id = w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.TakeOver = true })
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
}

// cases.md T22.
func TestAnOrphanIsFoundAndReportedOnce(t *testing.T) {
	w := enginetest.New("a")
	stop := w.Now()
	w.Orphan("a", fleet.Job{ID: 99, URL: "https://gitlab.example/-/jobs/99", StartedAt: stop})
	id := w.Ask(fleet.KindDrain, "a")
	w.Run(90 * time.Second)
	if op := w.Op(id); op.Phase != fleet.PhaseSucceeded {
		t.Fatalf("%s: an orphan must not hold the drain up\n%s", op.Phase, w.Story())
	} else if op.Drain.Disagreed != fleet.DisagreedGitLab {
		t.Errorf("GitLab contradicted the exit, and the row says %q", op.Drain.Disagreed)
	}
	w.ClearOrphans("a")
	w.Run(time.Hour)
	if w.Meter.Orphaned != 1 || strings.Count(w.Story(), "https://gitlab.example/-/jobs/99) was assigned") != 1 {
		t.Errorf("counted %d\n%s", w.Meter.Orphaned, w.Story())
	}
}

func TestAnOrphanIsDoubtfulIfGitLabWasOutOfReach(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, 3*time.Minute)
	w.Ask(fleet.KindDrain, "a")
	w.Run(30 * time.Second)
	w.GitLabDown = true
	w.Run(90 * time.Second)
	w.GitLabDown = false
	w.Orphan("a", fleet.Job{ID: 99, StartedAt: w.Now()})
	w.Run(time.Hour)
	if story := w.Story(); strings.Count(story, "GitLab was out of reach at the time") != 1 || strings.Contains(story, "timeout; cancel and retry it") {
		t.Errorf("a job that may have run is to be retried\n%s", story)
	}
}

func TestAJobTakenAfterAnUndrainIsLeftAlone(t *testing.T) {
	w := enginetest.New("a")
	w.Ask(fleet.KindDrain, "a")
	w.Run(5 * time.Second)
	w.Ask(fleet.KindUndrain, "a")
	w.Run(5 * time.Second)
	w.Advance(40 * time.Second)
	w.Orphan("a", fleet.Job{ID: 5, StartedAt: w.Now()})
	w.Run(time.Hour)
	if w.Meter.Orphaned+w.Meter.CutJobs != 0 {
		t.Errorf("a later life's job was reported\n%s", w.Story())
	}
}

func TestAJobTakenRightAfterAnUndrainIsLeftAlone(t *testing.T) {
	w := enginetest.New("a")
	w.Ask(fleet.KindDrain, "a")
	w.Run(5 * time.Second)
	w.Ask(fleet.KindUndrain, "a")
	w.Run(2 * time.Second)
	w.Orphan("a", fleet.Job{ID: 5, StartedAt: w.Now()})
	w.Run(time.Hour)
	if w.Meter.Orphaned+w.Meter.CutJobs != 0 {
		t.Errorf("a later life's job was reported\n%s", w.Story())
	}
}

// The signal was sent, so a job may have been lost, though intake came back.
func TestACanceledDrainIsWatchedForOrphansToo(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, 2*time.Minute)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(30 * time.Second)
	w.Orphan("a", fleet.Job{ID: 99, StartedAt: w.Now().Add(-30 * time.Second)})
	cancel(t, w, id)
	w.Run(time.Hour)
	if w.Meter.Orphaned != 1 {
		t.Errorf("%d orphans counted\n%s", w.Meter.Orphaned, w.Story())
	}
}

// cases.md T51, T53.
func TestAManagerThatAnotherVMSharesIsNotRemoved(t *testing.T) {
	w := enginetest.New("a")
	w.SameSystemID = true // the cloud keeps the SMBIOS UUID, so machine-id and system_id stay
	old := w.VM("a").ID
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if len(w.Removed) != 0 {
		t.Errorf("removed %v, which the new VM has\n%s", w.Removed, w.Story())
	}
}

// cases.md T53, T56: refuse to drain an ambiguous identity.
func TestTwoHostsWithOneSystemIDAreRefused(t *testing.T) {
	w := enginetest.New("a", "b")
	w.VM("b").SystemID = w.VM("a").SystemID
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "have the same system_id")
	if w.Calls["stop"] != 0 {
		t.Error("something was stopped")
	}
}

// cases.md T40: a drain that is called off leaves a VM that serves.
func TestACancelGivesIntakeBackInEveryPhaseBeforeTheDelete(t *testing.T) {
	for _, phase := range []fleet.Phase{fleet.PhaseQueued, fleet.PhasePreflight, fleet.PhaseDraining} {
		t.Run(string(phase), func(t *testing.T) {
			w := enginetest.New("a")
			w.Job("a", 1, 5*time.Minute)
			id := w.Ask(fleet.KindRecreate, "a")
			switch phase {
			case fleet.PhaseQueued:
			case fleet.PhasePreflight:
				w.Refuse["inspect"] = []error{fleet.Errorf(fleet.CodeUnavailable, "not yet")}
				w.Run(100 * time.Millisecond)
			default:
				w.Run(time.Minute)
			}
			if got := w.Op(id).Phase; got != phase {
				t.Fatalf("reached %s", got)
			}
			cancel(t, w, id)
			w.Run(time.Hour)
			ended(t, w, id, fleet.PhaseCanceled, "")
			if !w.VM("a").Serving() || len(w.Cut) > 0 {
				t.Errorf("cut %v\n%s", w.Cut, w.Story())
			}
		})
	}
}

func TestACreateRefusesAnExistingVM(t *testing.T) {
	w := enginetest.New("a")
	id := w.Ask(fleet.KindCreate, "a")
	w.Run(time.Hour)
	op := ended(t, w, id, fleet.PhaseFailed, "exists already")
	if !strings.Contains(op.ErrHint, "--recreate") {
		t.Errorf("hint %q", op.ErrHint)
	}
}

func TestADeletedVMIsCreatedAnew(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.Ask(fleet.KindDelete, "a")
	w.Run(time.Hour)
	if len(w.Living("a")) != 0 {
		t.Fatalf("still there\n%s", w.Story())
	}
	id := w.Ask(fleet.KindCreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
}

func TestADeleteWithoutADrainEndsTheJobAndSaysSo(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 8, time.Hour)
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	w.Run(10 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || len(w.Living("a")) != 0 {
		t.Fatalf("%s\n%s", op.Phase, w.Story())
	}
	if !strings.Contains(w.Story(), "the drain is skipped") {
		t.Error("it is not said")
	}
	if op := w.Op(id); len(op.CutJobs) != 1 || op.CutJobs[0].ID != 8 {
		t.Errorf("the cut job is not recorded: %v", op.CutJobs)
	}
}

// cases.md T31.
func TestAVMThatNeverJoinedNeedsNoDrain(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a")
	old.Unit.MainPID, old.Unit.ActiveState, old.Never = 0, "inactive", true
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old.ID)
	if w.Calls["stop"] != 0 {
		t.Error("a stop was sent")
	}
}

// cases.md T69: a VM that failed counts, and nobody creates without end.
func TestAVMThatDoesNotServeInTimeStaysForInspectionAndCostsTheBudget(t *testing.T) {
	w := enginetest.New("a", "b")
	w.BootDelay = time.Hour
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(20 * time.Minute)
	ended(t, w, id, fleet.PhaseFailed, "did not serve within")
	if len(w.Living("a")) != 1 {
		t.Error("the VM was not kept")
	}
	next := w.Ask(fleet.KindRecreate, "b")
	w.Run(10 * time.Minute)
	if got := w.Op(next).Phase; got != fleet.PhaseQueued {
		t.Errorf("%s: a failed VM must count against the budget", got)
	}
}

func TestADeadTokenIsFoundBeforeTheVMIsDeleted(t *testing.T) {
	w := enginetest.New("a")
	w.TokenDead = true
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "refuses the fleet's runner token")
	if w.Calls["stop"] != 0 {
		t.Error("something was stopped")
	}
}

// cases.md T90: a left-over boot disk blocks the create; it is waited for.
func TestTheCreateWaitsForTheDiskOfTheOldVM(t *testing.T) {
	w := enginetest.New("a")
	w.DiskLinger = 3 * time.Minute
	old := w.VM("a").ID
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if gap := w.VM("a").Born.Sub(w.VMs[0].Gone); gap < 3*time.Minute {
		t.Errorf("created %s after the delete, while the disk was there", gap)
	}
}

// A stop script that is still on its way to the host must find a higher number,
// or it would stop a VM that nobody restores.
func TestAnUndrainOutnumbersAStopThatIsStillOnItsWay(t *testing.T) {
	w := enginetest.New("a")
	id := w.Ask(fleet.KindUndrain, "a")
	w.Run(time.Minute)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if w.VM("a").Number == 0 {
		t.Errorf("the host was given no number\n%s", w.Story())
	}
}

func TestARunnerThatGitLabDoesNotKnowIsRefused(t *testing.T) {
	for want, change := range map[string]func(*enginetest.World){
		"does not know the host's system_id": func(w *enginetest.World) { w.Removed = []string{w.VM("a").SystemID} },
		"sees no manager of runner": func(w *enginetest.World) {
			w.Removed = []string{w.VM("a").SystemID, w.VM("b").SystemID}
		},
	} {
		t.Run(want, func(t *testing.T) {
			w := enginetest.New("a", "b")
			change(w)
			id := w.Ask(fleet.KindRecreate, "a")
			w.Run(time.Hour)
			ended(t, w, id, fleet.PhaseFailed, want)
			if w.Calls["stop"] != 0 {
				t.Error("something was stopped")
			}
		})
	}
}

func TestGitLabThatRefusesTheTokenIsSaidBeforeAnythingIsStopped(t *testing.T) {
	refusedInPreflight(t, "managers", fleet.Errorf(fleet.CodeForbidden, "GitLab refuses the token: 401 Unauthorized").WithHint("mend gitlab.token"))
}
