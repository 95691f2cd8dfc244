package liars

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// halfBlind is a token whose user does not see acme/hidden.
func halfBlind(c *simgitlab.Config) {
	c.Users = []simgitlab.User{{
		Name: "half", Token: simgitlab.DefaultUserToken, Scopes: []string{"read_api"},
		Role: simgitlab.RoleOwner, Projects: []string{"acme/seen"},
	}}
}

// Before GitLab 18 its word is unknown: the drain ends at the cap by the
// policy, and by what is missing. Without the job in the way it would be the
// same: an older GitLab cannot prove anything.
func TestWithoutJobExecutionStatusADrainEndsAtTheCapByItsPolicy(t *testing.T) {
	for _, policy := range []fleet.Unproven{fleet.UnprovenAbort, fleet.UnprovenProceed} {
		t.Run(string(policy), func(t *testing.T) {
			play(t, func(t *testing.T) {
				s := newScene(t, []string{"a"}, nil)
				old := s.VM("a").ID
				s.lab.Switch(func(sw *simgitlab.Switches) { sw.OmitJobExecutionStatus = true })
				s.run("a", 2*time.Minute)
				id := s.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.OnUnproven = policy })
				s.Run(9 * time.Minute)
				if s.Calls["delete"] > 0 {
					t.Fatalf("deleted inside the cap\n%s", s.Story())
				}
				s.Run(3 * time.Hour)
				if policy == fleet.UnprovenProceed {
					s.mustReplace(id, "a", old)
					if v := s.Op(id).Drain.Verdict; v != fleet.VerdictUnproven {
						t.Errorf("verdict %s, want unproven: nobody proved it", v)
					}
					return
				}
				s.mustStay(id, "a", old, "job_execution_status is missing")
			})
		})
	}
}

// cases.md T23: the list hides the job, the manager's own status does not.
func TestAJobInAProjectThatTheTokenCannotSeeIsWaitedFor(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, halfBlind)
		old := s.VM("a").ID
		s.late = 8 * time.Second // GitLab hears of the end after the process is gone
		s.speak(s.start("a", simgitlab.JobSpec{Project: "acme/hidden"}, 2*time.Minute))
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(125 * time.Second)
		if s.Calls["delete"] > 0 {
			t.Fatalf("deleted while GitLab's manager was active\n%s", s.Story())
		}
		s.Run(time.Hour)
		s.mustReplace(id, "a", old)
	})
}

// The watch cannot name an orphan that the token cannot see. It must not call
// that clean.
func TestAnOrphanInAProjectThatTheTokenCannotSeeIsNotCalledClean(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, halfBlind)
		old := s.VM("a").ID
		s.atStop(func() { s.assign("a", simgitlab.JobSpec{Project: "acme/hidden"}) })
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(50 * time.Minute)
		s.mustReplace(id, "a", old)
		if story := s.Story(); strings.Contains(story, "orphan_watch: clean") || !strings.Contains(story, "a project that the token cannot see") {
			t.Errorf("the watch sees nothing, and says that there is nothing\n%s", story)
		}
		s.Run(3 * time.Hour) // GitLab fails the job after an hour
		if open, _ := s.Store.UnfinishedChores(t.Context()); len(open) > 0 {
			t.Errorf("the watch never ends\n%s", s.Story())
		}
	})
}

// cases.md T24: on GitLab 18.5 to 18.7 an assigned job may stay pending, and no
// signal of the manager's shows it. The process does.
func TestAJobThatIsStillPendingInGitLabKeepsTheVM(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.lab.Switch(func(sw *simgitlab.Switches) { sw.TwoPhase = true })
		id := s.Ask(fleet.KindRecreate, "a")
		job := s.start("a", simgitlab.JobSpec{}, 4*time.Minute) // taken, and its runner has not spoken yet
		s.Run(3 * time.Minute)
		if rec, _ := s.lab.Job(job); rec.Status != simgitlab.StatusPending || s.Calls["delete"] > 0 {
			t.Fatalf("the job is %s, %d deletes\n%s", rec.Status, s.Calls["delete"], s.Story())
		}
		s.speak(job)
		s.Run(time.Hour)
		s.mustReplace(id, "a", old)
	})
}

// cases.md T24: one that was assigned in the instant of the stop and that no
// runner began is GitLab's to give to another: it is nobody's orphan.
func TestAPendingJobThatNobodyBeganIsNotCalledAnOrphan(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.lab.Switch(func(sw *simgitlab.Switches) { sw.TwoPhase = true })
		s.atStop(func() { s.assign("a", simgitlab.JobSpec{}) })
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(3 * time.Hour)
		s.mustReplace(id, "a", old)
		if s.Meter.Orphaned+s.Meter.CutJobs > 0 {
			t.Errorf("%d orphaned, %d cut\n%s", s.Meter.Orphaned, s.Meter.CutJobs, s.Story())
		}
	})
}

// GitLab writes the link to the manager after the status: a job may execute and
// be nobody's. The process is the proof, and the drain waits for it.
func TestARunningJobWithoutALinkToItsManagerKeepsTheVM(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.lab.Switch(func(sw *simgitlab.Switches) { sw.NoManagerLink = true })
		s.run("a", 4*time.Minute)
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(3 * time.Minute)
		if s.Calls["delete"] > 0 {
			t.Fatalf("deleted in mid-job\n%s", s.Story())
		}
		s.Run(time.Hour)
		s.mustReplace(id, "a", old)
	})
}

// Executing jobs that no manager claims are told of, and never taken for this
// VM's.
func TestAJobThatNoManagerClaimsIsToldOfAndIsNobodysOrphan(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a", "b"}, nil)
		old := s.VM("a").ID
		s.atStop(func() {
			s.lab.Switch(func(sw *simgitlab.Switches) { sw.NoManagerLink = true })
			s.assign("b", simgitlab.JobSpec{})
		})
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(3 * time.Hour)
		s.mustReplace(id, "a", old)
		if story := s.Story(); !strings.Contains(story, "/acme/app/-/jobs/") || !strings.Contains(story, "linked to no manager") {
			t.Errorf("nobody is told\n%s", story)
		}
		if s.Meter.Orphaned+s.Meter.CutJobs > 0 {
			t.Errorf("%d orphaned, %d cut\n%s", s.Meter.Orphaned, s.Meter.CutJobs, s.Story())
		}
	})
}

// A manager in mid-drain may go: somebody removes it, or GitLab does. A runner
// that still runs makes it anew with its next contact.
func TestAManagerThatVanishesInMidJobIsMadeAnewByItsRunner(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.speak(s.start("a", simgitlab.JobSpec{}, 4*time.Minute))
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(time.Minute)
		s.removeManager("a")
		s.Run(time.Hour)
		s.mustReplace(id, "a", old)
	})
}

// Once its process is gone nobody makes it anew. Not listed is not idle.
func TestAManagerThatVanishedAfterTheExitProvesNothing(t *testing.T) {
	for _, policy := range []fleet.Unproven{fleet.UnprovenAbort, fleet.UnprovenProceed} {
		t.Run(string(policy), func(t *testing.T) {
			play(t, func(t *testing.T) {
				s := newScene(t, []string{"a", "b"}, nil)
				old := s.VM("a").ID
				s.atStop(func() { s.quiet = true; s.removeManager("a") })
				id := s.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.OnUnproven = policy })
				s.Run(9 * time.Minute)
				if s.Calls["delete"] > 0 {
					t.Fatalf("deleted inside the cap\n%s", s.Story())
				}
				s.quiet = false
				s.Run(3 * time.Hour)
				if policy == fleet.UnprovenProceed {
					s.mustReplace(id, "a", old)
					return
				}
				s.mustStay(id, "a", old, "GitLab's answer is unknown")
			})
		})
	}
}

// removeManager has somebody else remove the VM's manager.
func (s *scene) removeManager(vm string) {
	s.t.Helper()
	body := map[string]string{"token": simgitlab.DefaultRunnerToken, "system_id": s.VM(vm).SystemID}
	if code, answer := s.post(http.MethodDelete, "/runners/managers", body); code != http.StatusNoContent {
		s.t.Fatalf("the manager was not removed: %d %s", code, answer)
	}
}

// For an hour GitLab calls the managers of dead VMs busy. They are not this
// VM's, and hold nothing up.
func TestTheGhostBusyManagersOfDeadVMsHoldNothingUp(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		for _, ghost := range []string{"s_ghost1", "s_ghost2"} {
			s.post(http.MethodPost, "/jobs/request", map[string]string{"token": simgitlab.DefaultRunnerToken, "system_id": ghost})
		}
		s.lab.Switch(func(sw *simgitlab.Switches) { sw.GhostBusy = []string{"s_ghost1", "s_ghost2"} })
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(5 * time.Minute)
		s.mustReplace(id, "a", old)
	})
}

// A VM's own manager may be ghost-busy too: by a job of an earlier life that
// died with a power cut. The process is gone: ten seconds, then the drain is
// over, and what GitLab still shows is accounted for.
func TestAVMWhoseOwnManagerIsGhostBusyIsDrainedAfterTheGrace(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a")
		s.lab.Switch(func(sw *simgitlab.Switches) { sw.GhostBusy = []string{old.SystemID} })
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(5 * time.Minute)
		s.mustReplace(id, "a", old.ID)
		if d := s.Op(id).Drain.Disagreed; d != fleet.DisagreedGitLab {
			t.Errorf("disagreement %q", d)
		}
		if !strings.Contains(s.Story(), "GitLab still shows") {
			t.Errorf("nobody is told\n%s", s.Story())
		}
	})
}

// The runner's token in config.toml has an expiry: its rotation would end the
// whole fleet. Nothing is stopped.
func TestATokenWithAnExpiryIsRefusedBeforeAnythingIsStopped(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.VM("a").TokenExpires = s.Now().Add(30 * 24 * time.Hour)
		for _, kind := range []fleet.Kind{fleet.KindRecreate, fleet.KindDrain, fleet.KindDelete} {
			id := s.Ask(kind, "a")
			s.Run(time.Minute)
			s.mustStay(id, "a", old, "token expires")
		}
		if s.Calls["stop"] > 0 {
			t.Errorf("%d stops\n%s", s.Calls["stop"], s.Story())
		}
	})
}
