//go:build e2e

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// Case T65: a job asks to recreate the VM that it runs on. Did it wait for that, the drain
// would wait for the job, and the job for the drain, until the cap ends it.

// toldIn is how long a job may take that is told not to wait: far less than the cap.
const toldIn = doorCap * 2 / 3

func TestAJobThatAsksForItsOwnVMIsToldAndTheVMGoesWhenItHasEnded(t *testing.T) {
	t.Parallel() // else all others would wait for these scenes
	for name, c := range map[string]struct {
		jobs    jobsIn
		prepare func(*door) error
		told    string // what the job's log says, with the job's id
	}{
		"GitLab says where it runs": {
			containers, func(*door) error { return nil },
			"This job runs on lab/one … GitLab says that job %d runs on system_id s_ … That VM is drained when this job has ended.",
		},
		"its container says where it runs": {
			containers, func(d *door) error { return d.GitLab.Switch(d.ctx, simgitlab.Switches{NoManagerLink: true}) },
			"This job runs on lab/one … the container of job %d runs there … That VM is drained when this job has ended.",
		},
		"nobody says where it runs": {
			shells, func(d *door) error {
				return d.GitLab.Inject(d.ctx, simgitlab.Fault{
					Kind: simgitlab.FaultStatus, Code: http.StatusNotFound, Routes: []string{"GET /projects/:id/jobs/:job_id"},
				})
			},
			"This job may run on one of these VMs … no host of the fleet shows job %d (1 of 1 answered) … It does not wait for any of them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, c.jobs, "one")
			one := d.host("one")
			if err := c.prepare(d); err != nil {
				t.Fatal(err)
			}
			job := d.asks(one, "one")
			job.letGo(one)
			j, said := job.endsInMidDrain(one, toldIn)
			d.mustMention(said, strings.Split(fmt.Sprintf(c.told, j.ID), " … ")...)
			id := operationOn(t, "one", said)
			d.mustMention(said, "lab/one goes on: sluice op watch "+id, doorURL+"/api/v1/operations/"+id, "ci ended well")
			d.goesAfter(one, j, id)
		})
	}
}

func TestOfThreeVMsTheAskingJobsOwnGoesLast(t *testing.T) {
	d := newDoor(t, containers, "one", "two", "three")
	one := d.host("one")
	others := []*host{d.host("two"), d.host("three")}
	job := d.asks(one, "one", "two", "three")
	jobs := d.beginOnEach(others, 10*time.Second)
	job.letGo(one)
	j, said := job.endsInMidDrain(one, 3*time.Minute)
	d.mustMention(said, "This job runs on lab/one", " lab/two: recreate succeeded", " lab/three: recreate succeeded",
		"(goes on at the controller)", "The job ends here, so that its own VM can be drained.", "ci ended well")
	d.goesAfter(one, j, operationOn(t, "one", said))
	for i, h := range others {
		d.mustHaveSucceeded(jobs[i])
		d.mustBeNew(h, "v2")
		if gone := d.deletion(h.ID); gone.At.After(j.FinishedAt) {
			t.Errorf("%s was deleted at %s, after the asking job's end at %s", h.Name, gone.At, j.FinishedAt)
		}
		d.succeeds(operationOn(t, h.Name, said))
	}
}

// goesAfter follows the asking job's own VM to its end: drained while the job still ran,
// deleted only after it, and made anew.
func (d *door) goesAfter(own *host, j simgitlab.JobRecord, id string) {
	d.t.Helper()
	op := d.succeeds(id)
	// The job ends as soon as its unit is deactivating; when the answer to the stop came
	// is what the controller notes.
	if op.StoppedAt == nil || op.StoppedAt.After(j.FinishedAt.Add(5*time.Second)) {
		d.t.Errorf("intake was stopped at %v, the asking job ended at %s", op.StoppedAt, j.FinishedAt)
	}
	if gone := d.deletion(own.ID); gone.At.Before(j.FinishedAt) {
		d.t.Errorf("deleted at %s, before the asking job's end at %s", gone.At, j.FinishedAt)
	}
	d.measure(own)
	d.mustBeNew(own, "v2")
}
