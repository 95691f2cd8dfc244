//go:build e2e

package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

func TestRecreateLetsTheJobFinishWhileTheOtherVMServes(t *testing.T) {
	s := newScene(t, "one", "two")
	one, two := s.host("one"), s.host("two")
	id := s.begin(one, longJob(60*time.Second))

	recreate := s.start("recreate", fleetName+"/one", "--image", "v2", "--yes")
	one.await("deactivating")
	served := s.serveWhile(two, recreate)
	recreate.wait(3*time.Minute, exitDone)

	s.mustHaveOutlived(one, id)
	s.measure(one)
	if served < 3 {
		t.Errorf("the other VM ran %d jobs throughout, want some", served)
	}
	s.mustBeNew(one, "v2")
	if now := s.machine("two"); now.ID != two.ID || s.host("two").systemID != two.systemID {
		t.Errorf("the other VM is %+v, want it untouched", now)
	}
}

// serveWhile runs short jobs on a host, one after another, as long as the command works,
// and says how many; each has to succeed.
func (s *scene) serveWhile(h *host, c *command) int {
	s.t.Helper()
	served := 0
	for c.running() {
		id := s.queue(h, longJob(time.Second))
		s.awaitJob(id, 20*time.Second, "run on the other VM", finished)
		s.mustHaveSucceeded(id)
		served++
	}
	return served
}

// mustBeNew fails unless the VM is another incarnation, made from the image, that serves.
func (s *scene) mustBeNew(old *host, image string) *host {
	s.t.Helper()
	now := s.host(old.Name)
	if now.ID == old.ID || now.systemID == old.systemID {
		s.t.Errorf("%s is still %s with system_id %s", old.Name, now.ID, now.systemID)
	}
	if got := now.run("cat /etc/e2e-image"); got != image {
		s.t.Errorf("%s runs image %s, want %s", old.Name, got, image)
	}
	managers, err := s.GitLab.Managers(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	online := false
	for _, m := range managers {
		online = online || m.SystemID == now.systemID && m.Status == "online"
	}
	if !online {
		s.t.Errorf("no online manager for %s among %+v", now.systemID, managers)
	}
	if left, err := s.World.Remains(old.ID); err != nil || len(left) > 0 {
		s.t.Errorf("left of the old VM: %v, %v", left, err)
	}
	return now
}

func TestVMIsDeletedOnlyAfterTheResultIsIn(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	const outage = 30 * time.Second
	id := s.begin(one, longJob(25*time.Second))
	recreate := s.start("recreate", fleetName+"/one", "--yes")
	one.await("deactivating")
	err := s.GitLab.Inject(s.ctx, simgitlab.Fault{
		Kind: simgitlab.FaultStatus, Code: http.StatusInternalServerError, FinalUpdateOnly: true, For: outage,
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.await(30*time.Second, "the container to be gone before the result is in", func() (bool, error) {
		return one.run("podman ps --quiet") == "", nil
	})
	recreate.wait(3*time.Minute, exitDone)
	j := s.mustHaveSucceeded(id)
	if j.FinishedAt.Sub(began) < outage {
		t.Errorf("the result was in after %s: the outage did not hold", j.FinishedAt.Sub(began))
	}
	if deleted := s.deletion(one.ID); deleted.At.Before(j.FinishedAt) {
		t.Errorf("deleted at %s, before the result was in at %s", deleted.At, j.FinishedAt)
	}
}

// tokenCalls are the calls that Sluice may make with the runner's token or about it.
var tokenCalls = []string{"DELETE /runners/managers", "GET /runners/router/discovery"}

func TestSluiceMakesNoCallThatCouldHurtTheToken(t *testing.T) {
	s := newScene(t, "one")
	s.host("one")
	s.sluice(exitDone, "recreate", fleetName+"/one", "--yes")
	requests, err := s.GitLab.Requests(s.ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range requests {
		if strings.HasPrefix(r.UserAgent, "gitlab-runner") || r.UserAgent == "e2e" {
			continue
		}
		seen[r.Route]++
	}
	t.Logf("Sluice's calls: %v", seen)
	if len(seen) == 0 {
		t.Error("Sluice made no call at all")
	}
	for route := range seen {
		if method, _, _ := strings.Cut(route, " "); method != http.MethodGet && route != tokenCalls[0] {
			t.Errorf("Sluice called %s", route)
		}
	}
}
