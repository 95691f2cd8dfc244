package gitlab_test

import (
	"slices"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

func TestAVMIsIdleWhenItsManagerIsAndItsListsAreEmpty(t *testing.T) {
	clock := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	w := newWorld(t, func(s *simgitlab.Config, _ *gitlab.Config) { s.Now = func() time.Time { return clock } })
	w.join("s_aaa")
	before := time.Now()
	r := w.read("s_aaa")

	if r.Busy() != fleet.BusyIdle || r.Unknown != "" || !r.Present || r.OtherClaims != 0 {
		t.Fatalf("reading = %+v", r)
	}
	if r.Manager.ID == 0 || r.Manager.SystemID != "s_aaa" || r.Manager.Status != "online" || !r.Manager.ContactedAt.Equal(clock) {
		t.Errorf("manager = %+v", r.Manager)
	}
	if !r.ServerTime.Equal(clock) {
		t.Errorf("server time = %s, want GitLab's clock %s", r.ServerTime, clock)
	}
	if r.TakenAt.Before(before) || r.TakenAt.After(time.Now()) {
		t.Errorf("taken at %s, not by our clock", r.TakenAt)
	}
	if err := about("s_aaa").Check(r.Subject); err != nil {
		t.Error(err)
	}
}

func TestABusyVMIsShownWithTheLinksOfItsJobs(t *testing.T) {
	w := newWorld(t, nil)
	p := w.start("s_aaa", simgitlab.JobSpec{Name: "deploy", Project: "acme/shop"})
	w.join("s_bbb")
	r := w.read("s_aaa")
	if r.Busy() != fleet.BusyActive || len(r.Running) != 1 || len(r.Canceling) != 0 {
		t.Fatalf("reading = %+v", r)
	}
	j := r.Running[0]
	if j.ID != p.ID || j.Name != "deploy" || j.Project != "acme/shop" || j.ProjectID == 0 || j.StartedAt.IsZero() {
		t.Errorf("job = %+v", j)
	}
	if rec, _ := w.Job(p.ID); j.URL != w.url+"/acme/shop/-/jobs/"+itoa(rec.ID) {
		t.Errorf("link = %q", j.URL)
	}
	if other := w.read("s_bbb"); other.Busy() != fleet.BusyIdle {
		t.Errorf("the other VM = %+v", other)
	}
	w.succeed(p)
	if after := w.read("s_aaa"); after.Busy() != fleet.BusyIdle {
		t.Errorf("after the job = %+v", after)
	}
}

func TestAContradictionIsActive(t *testing.T) {
	w := newWorld(t, nil)
	w.join("s_aaa")
	w.Switch(func(s *simgitlab.Switches) { s.GhostBusy = []string{"s_aaa"} })
	if r := w.read("s_aaa"); r.Busy() != fleet.BusyActive {
		t.Errorf("active with empty lists = %s (%+v)", r.Busy(), r)
	}
}

// Case T53 (gitlab-org/gitlab#436692): an unknown system_id looks like an idle one.
func TestAnUnknownSystemIDIsNotIdle(t *testing.T) {
	w := newWorld(t, nil)
	w.join("s_aaa")
	if r := w.read("s_typo"); r.Busy() != fleet.BusyUnknown || r.Present {
		t.Errorf("reading = %+v", r)
	}
	if r := w.read(""); r.Busy() != fleet.BusyUnknown || r.Unknown == "" {
		t.Errorf("without a system_id = %+v", r)
	}
}

func TestAnOlderGitLabWithoutExecutionStatusIsUnknown(t *testing.T) {
	w := newWorld(t, nil)
	w.join("s_aaa")
	w.Switch(func(s *simgitlab.Switches) { s.OmitJobExecutionStatus = true })
	r := w.read("s_aaa")
	if r.Busy() != fleet.BusyUnknown {
		t.Errorf("reading = %+v", r)
	}
	mustSay(t, r.Unknown, "job_execution_status is missing")
}

// Case T23 (gitlab-org/gitlab!268997): the list leaves out what the token's
// user may not see; the manager's own status does not.
func TestAJobInAHiddenProjectKeepsTheVMBusy(t *testing.T) {
	w := newWorld(t, func(s *simgitlab.Config, _ *gitlab.Config) {
		s.Users = []simgitlab.User{{
			Name: "half", Token: simgitlab.DefaultUserToken, Scopes: []string{"read_api"},
			Role: simgitlab.RoleOwner, Projects: []string{"acme/seen"},
		}}
	})
	w.start("s_aaa", simgitlab.JobSpec{Project: "acme/hidden"})
	if r := w.read("s_aaa"); r.Busy() != fleet.BusyActive || len(r.Running) != 0 {
		t.Errorf("reading = %+v", r)
	}
}

func TestAJobThatNoManagerClaimsIsReported(t *testing.T) {
	w := newWorld(t, nil)
	w.Switch(func(s *simgitlab.Switches) { s.NoManagerLink = true })
	p := w.start("s_aaa", simgitlab.JobSpec{})
	r := w.read("s_aaa")
	if len(r.Unclaimed) != 1 || r.Unclaimed[0].ID != p.ID {
		t.Errorf("unclaimed = %+v, want job %d", r.Unclaimed, p.ID)
	}
}

func TestEveryPageIsRead(t *testing.T) {
	w := newWorld(t, nil)
	w.Switch(func(s *simgitlab.Switches) { s.MaxPerPage = 2 })
	var want []int64
	for range 5 {
		want = append(want, w.start("s_aaa", simgitlab.JobSpec{}).ID)
	}
	got := []int64{}
	for _, j := range w.read("s_aaa").Running {
		got = append(got, j.ID)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAListThatHidesItsNextPageIsReadToTheEnd(t *testing.T) {
	w := newWorld(t, nil)
	w.Switch(func(s *simgitlab.Switches) { s.MaxPerPage, s.CutPages = 2, true })
	for range 3 {
		w.start("s_aaa", simgitlab.JobSpec{})
	}
	if r := w.read("s_aaa"); len(r.Running) != 3 {
		t.Errorf("%d jobs, want 3", len(r.Running))
	}
}

func TestAFailingPageMakesTheReadingUnknown(t *testing.T) {
	w := newWorld(t, nil)
	w.Switch(func(s *simgitlab.Switches) { s.MaxPerPage = 1 })
	p := w.start("s_aaa", simgitlab.JobSpec{})
	q := w.start("s_aaa", simgitlab.JobSpec{})
	w.Inject(simgitlab.Fault{Kind: simgitlab.FaultStatus, Code: 404, Routes: []string{"GET /runners/:id/jobs"}, Skip: 2})
	r := w.read("s_aaa")
	if r.Unknown == "" || r.Busy() == fleet.BusyIdle {
		t.Errorf("reading = %+v", r)
	}
	w.succeed(p)
	w.succeed(q)
}

func TestAStaleReadIsSeenAsGitLabGivesIt(t *testing.T) {
	w := newWorld(t, nil)
	p := w.start("s_aaa", simgitlab.JobSpec{})
	w.Switch(func(s *simgitlab.Switches) { s.StaleReads = 3 })
	w.succeed(p)
	if r := w.read("s_aaa"); r.Busy() != fleet.BusyActive {
		t.Errorf("stale = %s", r.Busy())
	}
	if r := w.read("s_aaa"); r.Busy() != fleet.BusyIdle {
		t.Errorf("later = %s %s", r.Busy(), r.Unknown)
	}
}

func TestTheRunnerAndItsManagersCanBeListed(t *testing.T) {
	w := newWorld(t, nil)
	w.join("s_aaa")
	w.join("s_bbb")
	info, err := w.entry.Runner(t.Context())
	if err != nil || info.ID != simgitlab.DefaultRunnerID || info.Type != "group_type" || info.Paused || info.Description != "fleet" {
		t.Errorf("runner = %+v, %v", info, err)
	}
	ms, at, err := w.entry.Managers(t.Context())
	if err != nil || len(ms) != 2 || at.IsZero() {
		t.Errorf("managers = %+v at %s, %v", ms, at, err)
	}
}

func TestATraceIsEmptyOnlyIfTheRunnerNeverWrote(t *testing.T) {
	w := newWorld(t, nil)
	p := w.start("s_aaa", simgitlab.JobSpec{})
	job := w.read("s_aaa").Running[0]
	if empty, err := w.entry.TraceEmpty(t.Context(), job); err != nil || !empty {
		t.Errorf("before: %v, %v", empty, err)
	}
	w.patch(p, "Running with gitlab-runner\n")
	if empty, err := w.entry.TraceEmpty(t.Context(), job); err != nil || empty {
		t.Errorf("after: %v, %v", empty, err)
	}
	w.Inject(simgitlab.Fault{Kind: simgitlab.FaultHTML})
	if _, err := w.entry.TraceEmpty(t.Context(), job); fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Errorf("a page is no trace: %v", err)
	}
}
