//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
)

func TestHostRebootedInMidDrainIsStoppedAgain(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.begin(one, longJob(time.Minute))
	recreate := s.start("recreate", "lab/one", "--image", "v2", "--cap", "90s", "--yes", noLinger)
	one.await("deactivating")
	if err := s.World.PowerCut(s.ctx, one.Machine); err != nil {
		t.Fatal(err)
	}
	if err := s.World.PowerOn(one.Machine); err != nil {
		t.Fatal(err)
	}
	recreate.wait(3*time.Minute, exitDone)
	deleted := s.deletion(one.ID)
	if deleted.Runner["ActiveState"] != "inactive" || deleted.Runner["MainPID"] != "0" {
		t.Errorf("the delete found the runner as %v", deleted.Runner)
	}
	s.mustBeNew(one, "v2")
}

func TestVMDrainedOnPurposeIsStoppedAgainAfterAReboot(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.serve()
	s.sluice(exitDone, "drain", "lab/one", "--yes", noLinger)
	one.reboot()
	s.await(2*time.Minute, "the runner to be stopped again", func() (bool, error) {
		return one.dropIn() && one.unit("ActiveState") == "inactive", nil
	})
	s.sluice(exitDone, "undrain", "lab/one", "--yes")
	s.mustServeAgain(one)
}

func TestRebootBetweenProofAndDeleteStartsTheDrainAgain(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	// The cloud's last look at image and template takes long enough for a reboot.
	if err := s.World.SetWeather(machines.Weather{CheckDelay: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	recreate := s.start("recreate", "lab/one", "--image", "v2", "--yes", noLinger)
	s.await(time.Minute, "the last look before the delete", func() (bool, error) {
		visits, err := s.World.Visits()
		for _, v := range visits {
			if v.Verb == "check" {
				return true, err
			}
		}
		return false, err
	})
	after := one.reboot()
	if err := s.World.SetWeather(machines.Weather{}); err != nil {
		t.Fatal(err)
	}
	recreate.wait(3*time.Minute, exitDone)
	deleted := s.deletion(one.ID)
	if deleted.Runner["BootID"] != after {
		t.Errorf("deleted in boot %s, want %s", deleted.Runner["BootID"], after)
	}
	if deleted.Runner["ActiveState"] != "inactive" || deleted.Runner["Result"] != "success" || deleted.Runner["MainPID"] != "0" {
		t.Errorf("the delete found the runner as %v", deleted.Runner)
	}
	s.mustBeNew(one, "v2")
}
