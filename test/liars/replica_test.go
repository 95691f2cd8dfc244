package liars

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// cases.md T15, T16: the replica shows the VM idle although a job was just
// assigned. The process is the proof: it still runs.
func TestAVMThatAStaleReplicaCallsIdleIsNotDeletedWhileItsJobRuns(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.lab.Switch(func(sw *simgitlab.Switches) { sw.StaleReads = 1 << 30 })
		s.run("a", 5*time.Minute) // seen by no reader from here on
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(4 * time.Minute)
		if s.Calls["delete"] > 0 {
			t.Fatalf("deleted in mid-job\n%s", s.Story())
		}
		s.lab.Switch(func(sw *simgitlab.Switches) { sw.StaleReads = 0 })
		s.Run(time.Hour)
		s.mustReplace(id, "a", old)
	})
}

// The other way about: an old "active" only delays, and nobody is called cut.
func TestAReplicaThatStillShowsAnEndedJobOnlyDelays(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.run("a", 5*time.Minute)
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(4 * time.Minute)
		s.lab.Switch(func(sw *simgitlab.Switches) { sw.StaleReads = 12 }) // of the job's end: four readings
		s.Run(time.Hour)
		s.mustReplace(id, "a", old)
		if !strings.Contains(s.Story(), "its last result is on its way to GitLab") {
			t.Errorf("the drain did not wait for the replica\n%s", s.Story())
		}
		if s.Meter.CutJobs+s.Meter.Orphaned > 0 {
			t.Errorf("%d jobs are called cut, %d orphaned\n%s", s.Meter.CutJobs, s.Meter.Orphaned, s.Story())
		}
	})
}

// cases.md T22: the replica shows the job that was assigned in the instant of
// the stop only when the VM is long gone. The orphan watch looks again.
func TestAnOrphanThatTheReplicaShowsLateIsFound(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.atStop(func() {
			s.lab.Switch(func(sw *simgitlab.Switches) { sw.StaleReads = 9 })
			s.assign("a", simgitlab.JobSpec{})
		})
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(3 * time.Hour)
		s.mustReplace(id, "a", old)
		if s.Meter.Orphaned != 1 {
			t.Errorf("%d orphans found, want the one\n%s", s.Meter.Orphaned, s.Story())
		}
	})
}

// The list of managers lags behind: the new VM's is not in it for a while. The
// gate waits for it.
func TestANewVMWhoseManagerIsListedLatePassesTheGate(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a")
		known := old.SystemID
		until := s.Now().Add(4 * time.Minute)
		s.wire.meddle = managers(func(m map[string]any) bool { return m["system_id"] == known || s.Now().After(until) })
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(3 * time.Minute)
		if got := s.Op(id); got.Phase != fleet.PhaseVerifying || !strings.Contains(got.Waiting, "GitLab has not seen") {
			t.Fatalf("%s: %s\n%s", got.Phase, got.Waiting, s.Story())
		}
		s.Run(time.Hour)
		s.mustReplace(id, "a", old.ID)
	})
}

// The list of managers says idle from before the job, the list of jobs is
// fresh: a contradiction is active.
func TestAManagersListThatLagsBehindTheJobsIsNotBelieved(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.late = 8 * time.Second // the last result is on its way
		s.run("a", time.Minute)
		s.wire.meddle = managers(func(m map[string]any) bool { m["job_execution_status"] = "idle"; return true })
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(66 * time.Second)
		if s.Calls["delete"] > 0 {
			t.Fatalf("deleted while GitLab listed the job\n%s", s.Story())
		}
		s.Run(time.Hour)
		s.mustReplace(id, "a", old)
	})
}

// managers changes each manager of a list, and leaves out those for which keep
// is false.
func managers(keep func(map[string]any) bool) func(*http.Request, *http.Response) *http.Response {
	return func(req *http.Request, resp *http.Response) *http.Response {
		if !strings.HasSuffix(req.URL.Path, "/managers") || resp.StatusCode != http.StatusOK {
			return resp
		}
		var list, kept []map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
			panic(err)
		}
		kept = []map[string]any{}
		for _, m := range list {
			if keep(m) {
				kept = append(kept, m)
			}
		}
		raw, err := json.Marshal(kept)
		if err != nil {
			panic(err)
		}
		resp.Body = io.NopCloser(strings.NewReader(string(raw)))
		return resp
	}
}
