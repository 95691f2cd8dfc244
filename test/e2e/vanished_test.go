//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// Cases T9, T98: what somebody else took away in mid-drain is seen as that.
func TestAVMThatSomebodyTakesAwayInMidDrainIsMadeAnewAndItsJobToldToBeCut(t *testing.T) {
	s := newScene(t, "off", "gone", "swapped")
	off, gone, swapped := s.host("off"), s.host("gone"), s.host("swapped")
	s.serve()
	jobs, ops := map[*host]int64{}, map[*host]string{}
	for _, h := range []*host{off, gone, swapped} {
		jobs[h] = s.begin(h, longJob(5*time.Minute))
		ops[h] = s.recreates(h.Name)
		s.await(time.Minute, "the stop on "+h.Name+" to be answered", func() (bool, error) {
			return s.operation(ops[h]).StoppedAt != nil, nil
		})
	}
	s.must(s.World.PowerCut(s.ctx, off.Machine))
	s.must(s.World.Delete(s.ctx, gone.ID))
	s.must(s.World.Delete(s.ctx, swapped.ID))
	s.boot("swapped")
	theirs := s.host("swapped")
	pid := theirs.unit("MainPID")

	s.mustEndWith(s.follow(ops[off], exitJobCut), "off", jobs[off])
	s.mustBeNew(off, "v2")
	s.mustEndWith(s.follow(ops[gone], exitJobCut), "absent", jobs[gone])
	s.mustBeNew(gone, "v2")
	s.mustNotBeDeleted(gone)

	op := s.follow(ops[swapped], exitFailed)
	if op.Failure == nil || op.Failure.Code != "conflict" {
		t.Errorf("the operation on the replaced VM ended as %+v", op.Failure)
	}
	theirs.mustBeUntouched(pid)
	s.mustNotBeDeleted(swapped)
	s.mustNotBeDeleted(theirs)
}

// Cases T30, T31.
func TestAHostThatWasNeverThereIsLeftAloneAndOneThatNeverJoinedNeedsNoDrain(t *testing.T) {
	s := newScene(t, "mute")
	s.configure(stage.Config{Fleet: fleetName, VMs: []string{"mute", "idle"}, Drain: shortReach})
	_, err := s.World.Create(s.ctx, machines.Spec{Name: "idle", Image: "v1", Files: map[string]string{
		"/etc/systemd/system/gitlab-runner.service.d/never.conf": "[Unit]\nConditionPathExists=/nowhere\n",
	}})
	s.must(err)
	mute := s.host("mute")
	pid := mute.unit("MainPID")
	idle := &host{Machine: s.machine("idle"), scene: s}
	idle.login()
	s.must(s.World.Partition(s.ctx, mute.Machine, true))
	s.serve()
	unreached, unjoined := s.recreates("mute"), s.recreates("idle")

	s.mustEndWith(s.follow(unjoined, exitDone), "never_joined")
	s.mustBeNew(idle, "v2")
	if op := s.follow(unreached, exitFailed); op.Failure == nil || op.Failure.Code != "unavailable" || op.StoppedAt != nil {
		t.Errorf("the operation ended as %+v, stopped at %v", op.Failure, op.StoppedAt)
	}
	s.must(s.World.Partition(s.ctx, mute.Machine, false))
	mute.mustBeUntouched(pid)
	s.mustNotBeDeleted(mute)
}
