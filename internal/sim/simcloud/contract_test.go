package simcloud_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/provider/providertest"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simcloud"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// behind is the cloud past its API, as the contract wants it.
type behind struct{ *simcloud.Cloud }

func (b behind) Appear(t *testing.T, vm string, labels map[string]string) string {
	t.Helper()
	id, err := b.Cloud.Appear(vm, labels)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (b behind) Exists(_ *testing.T, id string) bool {
	for _, in := range b.Instances() {
		if in.ID == id {
			return true
		}
	}
	return false
}

func (b behind) Blind(_ *testing.T, blind bool)           { b.Cloud.Blind(blind) }
func (b behind) FailCreate(_ *testing.T, code fleet.Code) { b.FailCreates(code) }
func (b behind) LoseCreate(_ *testing.T)                  { b.Cloud.LoseCreate() }
func (b behind) DeliverLate(_ *testing.T) string          { return b.Cloud.DeliverLate() }
func (b behind) HoldReady(_ *testing.T, hold bool)        { b.Cloud.HoldReady(hold) }
func (b behind) KeepDependents(_ *testing.T, keep bool)   { b.KeepDisks(keep) }
func (b behind) DropDependents(_ *testing.T)              { b.DropDisks() }
func (b behind) HoldActs(_ *testing.T, hold bool)         { b.Hold(hold) }
func (b behind) FailureKinds() []fleet.Code {
	return []fleet.Code{
		fleet.CodeStockout, fleet.CodeQuota, fleet.CodeUnavailable, fleet.CodeRateLimited,
		fleet.CodeConflict, fleet.CodeImageMissing, fleet.CodeInvalid, fleet.CodeForbidden,
	}
}

func newCloud(t *testing.T) *simcloud.Cloud {
	t.Helper()
	c := simcloud.New(simcloud.Options{
		Clock: simclock.NewReal(time.Now), Images: []string{"runner-image-1", "runner-image-2"},
		Create: 10 * time.Millisecond, Delete: 10 * time.Millisecond,
	})
	t.Cleanup(c.Close)
	return c
}

func TestTheCloudKeepsTheContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Setup {
		c := newCloud(t)
		return providertest.Setup{
			Machines: c, World: behind{c}, Fleet: "f", Image: simcloud.Newest, Exact: "runner-image-2",
			NoImage: "runner-image-none", Dependents: true,
		}
	})
}

func TestALostAnswerLeavesItsEffectAndTheTokenFindsIt(t *testing.T) {
	c := newCloud(t)
	p, err := c.Prepare(t.Context(), "vm-1", "")
	if err != nil {
		t.Fatal(err)
	}
	order := engine.CreateOrder{Ref: fleet.Ref{Fleet: "f", VM: "vm-1"}, Operation: "op-1", Attempt: 1, Token: "t1", Prepared: p}
	c.LoseAnswers(1)
	if _, err := c.Create(t.Context(), order); fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Fatalf("the lost answer is %v", err)
	}
	deadline := time.After(5 * time.Second)
	for {
		progress, err := c.Create(t.Context(), order)
		if err != nil {
			t.Fatal(err)
		}
		if progress.Done {
			break
		}
		select {
		case <-deadline:
			t.Fatal("the create never ended")
		case <-time.After(2 * time.Millisecond):
		}
	}
	if got := c.Instances(); len(got) != 1 || got[0].Labels[fleet.LabelOperation] != "op-1" {
		t.Errorf("instances = %+v", got)
	}
}

func TestInstanceIDsAreNeverUsedAgain(t *testing.T) {
	c := newCloud(t)
	seen := map[string]bool{}
	for range 5 {
		id, err := c.Appear("vm-1", nil)
		if err != nil || seen[id] {
			t.Fatalf("id %s, %v; before: %v", id, err, seen)
		}
		seen[id] = true
		c.Vanish(id)
	}
}

func TestADiskMayOutliveItsInstance(t *testing.T) {
	c := simcloud.New(simcloud.Options{Clock: simclock.NewReal(time.Now), DiskLag: time.Hour})
	defer c.Close()
	id, err := c.Appear("vm-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Vanish(id)
	left, err := c.Remains(t.Context(), engine.DeleteOrder{Instance: id})
	if err != nil || len(left) != 1 || left[0] != "disk disk-"+id {
		t.Errorf("remains = %v, %v", left, err)
	}
}
