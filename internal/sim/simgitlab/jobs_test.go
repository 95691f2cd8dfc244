package simgitlab_test

import (
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

func jobWorld(t *testing.T) (w *world, owner, developer, reporter *gitlab.Client) {
	t.Helper()
	w = newWorld(t, simgitlab.Config{Users: []simgitlab.User{
		{Name: "owner", Token: "glpat-o", Scopes: []string{"api"}, Role: simgitlab.RoleOwner},
		{Name: "developer", Token: "glpat-d", Scopes: []string{"api"}, Role: simgitlab.RoleDeveloper},
		{Name: "reporter", Token: "glpat-r", Scopes: []string{"api"}, Role: simgitlab.RoleDeveloper, Reports: []string{"acme/app"}},
	}})
	return w, w.client("glpat-o"), w.client("glpat-d"), w.client("glpat-r")
}

func forced(c *gitlab.Client, p *simgitlab.JobPayload) (*gitlab.Job, *gitlab.Response, error) {
	return c.Jobs.CancelJobWithOptions(p.JobInfo.ProjectID, p.ID, &gitlab.CancelJobOptions{Force: new(true)}) //nolint:staticcheck // the only way with force before client-go 4
}

// facts/gitlab.md 10.2: cancel is two steps where the runner can cancel
// gracefully, and the second is a Maintainer's.
func TestACancelingJobNeedsForceAndAMaintainer(t *testing.T) {
	w, owner, developer, reporter := jobWorld(t)
	p := w.take("s_aaa", simgitlab.JobSpec{})
	if _, r, err := reporter.Jobs.CancelJob(p.JobInfo.ProjectID, p.ID); err == nil || r.StatusCode != 403 {
		t.Errorf("a Reporter canceled it: %v", err)
	}
	if j, _, err := forced(owner, p); err != nil || j.Status != "running" {
		t.Errorf("force of a running job = %+v, %v", j, err)
	}
	if j, _, err := developer.Jobs.CancelJob(p.JobInfo.ProjectID, p.ID); err != nil || j.Status != "canceling" {
		t.Fatalf("cancel = %+v, %v", j, err)
	}
	if j, _, err := owner.Jobs.CancelJob(p.JobInfo.ProjectID, p.ID); err != nil || j.Status != "canceling" {
		t.Errorf("a second cancel = %+v, %v", j, err)
	}
	if _, r, err := forced(developer, p); err == nil || r.StatusCode != 403 {
		t.Errorf("a Developer forced it: %v", err)
	}
	if j, _, err := forced(owner, p); err != nil || j.Status != "canceled" {
		t.Errorf("force = %+v, %v", j, err)
	}
}

func TestTheCancelOfAFinishedJobIsAnsweredAndChangesNothing(t *testing.T) {
	w, owner, _, _ := jobWorld(t)
	p := w.take("s_aaa", simgitlab.JobSpec{})
	w.update(p, "success", "")
	j, r, err := owner.Jobs.CancelJob(p.JobInfo.ProjectID, p.ID)
	if err != nil || r.StatusCode != 201 || j.Status != "success" {
		t.Errorf("cancel = %+v, %v", j, err)
	}
}

// A canceling job can be retried, once; its pipeline then shows the new one in
// its place.
func TestARetriedJobLeavesItsPipelinesList(t *testing.T) {
	w, owner, _, reporter := jobWorld(t)
	other := w.take("s_aaa", simgitlab.JobSpec{Name: "lint"})
	p := w.take("s_aaa", simgitlab.JobSpec{Name: "build", Pipeline: other.ID})
	project := p.JobInfo.ProjectID
	if _, _, err := owner.Jobs.CancelJob(project, p.ID); err != nil {
		t.Fatal(err)
	}
	if _, r, err := reporter.Jobs.RetryJob(project, p.ID); err == nil || r.StatusCode != 403 {
		t.Errorf("a Reporter retried it: %v", err)
	}
	again, _, err := owner.Jobs.RetryJob(project, p.ID)
	if err != nil || again.ID == p.ID || again.Pipeline.ID != other.ID {
		t.Fatalf("retry of a canceling job = %+v, %v", again, err)
	}
	list, _, err := owner.Jobs.ListPipelineJobs(project, other.ID, nil)
	if err != nil || len(list) != 2 || list[0].ID != again.ID || list[1].ID != other.ID || list[0].Pipeline.Status != "running" {
		t.Errorf("the pipeline's jobs = %+v, %v", list, err)
	}
}
