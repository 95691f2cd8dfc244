package simgitlab_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

func itoa(n int) string { return strconv.Itoa(n) }

func jobPath(p *simgitlab.JobPayload) string { return fmt.Sprintf("/api/v4/jobs/%d", p.ID) }

func TestAJobRunsToItsEndAndTheLedgerKnows(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	p := w.take("s_aaa", simgitlab.JobSpec{Duration: 1500 * time.Millisecond, AfterDuration: time.Second})

	if len(p.Steps) != 2 || p.Steps[0].Name != "script" || p.Steps[1].When != "always" {
		t.Fatalf("steps = %+v", p.Steps)
	}
	if got := p.Steps[0].Script[0]; got != "sleep 1.5" {
		t.Errorf("script = %q", got)
	}
	for _, line := range append(p.Steps[0].Script, p.Steps[1].Script...) {
		if strings.Contains(line, simgitlab.ScriptEndedMark) || strings.Contains(line, simgitlab.AfterScriptEndedMark) {
			t.Errorf("%q: a runner that prints its commands would print the mark too soon", line)
		}
	}
	w.trace(p, "hello\n"+simgitlab.ScriptEndedMark+"\n")
	if code, h := w.update(p, "success", ""); code != http.StatusOK || h.Get("Job-Status") != "success" {
		t.Fatalf("final update = %d, Job-Status %q", code, h.Get("Job-Status"))
	}
	rec, _ := w.Job(p.ID)
	if rec.Verdict != simgitlab.VerdictSucceeded || !rec.ScriptEnded || rec.AfterScriptEnded || rec.SystemID != "s_aaa" {
		t.Fatalf("record = %+v", rec)
	}
	if code, _ := w.update(p, "success", ""); code != http.StatusForbidden {
		t.Errorf("an update of a finished job = %d, want 403", code)
	}
}

func TestAHeldRequestGetsTheJobThatIsQueuedMeanwhile(t *testing.T) {
	w := newWorld(t, simgitlab.Config{LongPoll: time.Minute})
	code, h, _ := w.poll(t.Context(), "s_aaa", "")
	if code != http.StatusNoContent || h.Get("X-GitLab-Last-Update") == "" {
		t.Fatalf("first poll = %d, %v", code, h)
	}
	got := make(chan int, 1)
	go func() {
		code, _, _ := w.poll(t.Context(), "s_aaa", h.Get("X-GitLab-Last-Update"))
		got <- code
	}()
	w.Enqueue(simgitlab.JobSpec{})
	if code := <-got; code != http.StatusCreated {
		t.Fatalf("held poll = %d, want 201", code)
	}
}

// Case T22 (gitlab-org/gitlab-runner#39847).
func TestARequestCutAfterTheAssignmentLeavesAnOrphan(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	w.Switch(func(s *simgitlab.Switches) { s.AssignDelay = time.Minute })
	id := w.Enqueue(simgitlab.JobSpec{})
	ctx, cut := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.poll(ctx, "s_aaa", "") }()
	eventually(t, "the assignment", func() bool { r, _ := w.Job(id); return r.Status == "running" })
	cut()
	<-done
	eventually(t, "the orphan in the ledger", func() bool { return w.Ledger().Orphaned == 1 })
	rec, _ := w.Job(id)
	if rec.Status != "running" || rec.SystemID != "s_aaa" || rec.Heard {
		t.Fatalf("record = %+v: GitLab must go on showing it as running on that VM", rec)
	}
}

func TestTheLedgerTellsCutFromFailed(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	own := w.take("s_aaa", simgitlab.JobSpec{})
	w.update(own, "failed", "script_failure")
	killed := w.take("s_aaa", simgitlab.JobSpec{})
	w.update(killed, "failed", "runner_interrupted")
	vanished := w.take("s_bbb", simgitlab.JobSpec{})
	w.trace(vanished, "x")
	unheard := w.take("s_bbb", simgitlab.JobSpec{})
	w.VMGone("s_bbb")

	want := map[int64]simgitlab.Verdict{
		own.ID: simgitlab.VerdictFailed, killed.ID: simgitlab.VerdictCut,
		vanished.ID: simgitlab.VerdictCut, unheard.ID: simgitlab.VerdictOrphaned,
	}
	for _, rec := range w.Ledger().Jobs {
		if rec.Verdict != want[rec.ID] {
			t.Errorf("job %d = %s, want %s", rec.ID, rec.Verdict, want[rec.ID])
		}
	}
	if l := w.Ledger(); l.Cut != 2 || l.Orphaned != 1 || l.Failed != 1 || l.Ran != 3 {
		t.Errorf("ledger = %+v", l)
	}
}

func TestANewVMWithAnOldSystemIDIsNotBlamedForItsPredecessor(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	w.VMGone("s_aaa")
	p := w.take("s_aaa", simgitlab.JobSpec{})
	w.trace(p, "x")
	if rec, _ := w.Job(p.ID); rec.Verdict != simgitlab.VerdictRunning {
		t.Errorf("verdict = %s", rec.Verdict)
	}
}

func TestAFinalUpdateFaultLetsTheTraceThrough(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	p := w.take("s_aaa", simgitlab.JobSpec{})
	w.Inject(simgitlab.Fault{Kind: simgitlab.FaultStatus, Code: 500, FinalUpdateOnly: true, Count: 2})
	if code, _ := w.update(p, "running", ""); code != http.StatusOK {
		t.Errorf("keep-alive = %d", code)
	}
	if code, _ := w.trace(p, "x"); code != http.StatusAccepted {
		t.Errorf("trace = %d", code)
	}
	for i, want := range []int{500, 500, 200} {
		if code, _ := w.update(p, "success", ""); code != want {
			t.Errorf("final update %d = %d, want %d", i, code, want)
		}
	}
}

func TestACancelReachesTheRunnerThroughJobStatus(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	p := w.take("s_aaa", simgitlab.JobSpec{})
	j, _, err := w.client(simgitlab.DefaultWriteToken).Jobs.CancelJob(p.JobInfo.ProjectID, p.ID)
	if err != nil || j.Status != "canceling" {
		t.Fatalf("cancel = %+v, %v", j, err)
	}
	if code, h := w.trace(p, "x"); code != http.StatusAccepted || h.Get("Job-Status") != "canceling" {
		t.Errorf("trace = %d, Job-Status %q", code, h.Get("Job-Status"))
	}
	w.update(p, "failed", "")
	if rec, _ := w.Job(p.ID); rec.Status != "canceled" || rec.Verdict != simgitlab.VerdictCanceled {
		t.Errorf("record = %+v", rec)
	}
}

func TestATwoPhaseJobStaysPendingUntilTheRunnerSpeaks(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	w.Switch(func(s *simgitlab.Switches) { s.TwoPhase = true })
	p := w.take("s_aaa", simgitlab.JobSpec{})
	if rec, _ := w.Job(p.ID); rec.Status != "pending" || rec.ManagerID != 0 || rec.RunnerID == 0 {
		t.Fatalf("record = %+v", rec)
	}
	w.update(p, "running", "")
	if rec, _ := w.Job(p.ID); rec.Status != "running" || rec.ManagerID == 0 {
		t.Fatalf("record = %+v", rec)
	}
}

func TestDeletingAManagerLeavesTheSharedTokenAlive(t *testing.T) {
	w := newWorld(t, simgitlab.Config{})
	w.request("s_aaa")
	w.request("s_bbb")
	body := map[string]string{"token": simgitlab.DefaultRunnerToken, "system_id": "s_aaa"}
	for _, want := range []int{204, 404} {
		if code, _, _ := w.call(t.Context(), http.MethodDelete, "/api/v4/runners/managers", body); code != want {
			t.Errorf("delete = %d, want %d", code, want)
		}
	}
	if code, _, _ := w.poll(t.Context(), "s_bbb", ""); code != http.StatusNoContent {
		t.Errorf("the other VM's poll = %d", code)
	}
	if d := w.Ledger().Damage; len(d) != 0 {
		t.Errorf("damage = %+v", d)
	}
}

func TestDestructiveCallsHurtEveryVMAndAreRecorded(t *testing.T) {
	tok := map[string]string{"token": simgitlab.DefaultRunnerToken}
	for _, c := range []struct {
		method, path string
		body         any
		poll         int // what the other VM's next poll gets
	}{
		{"DELETE", "/api/v4/runners", tok, 403},
		{"DELETE", "/api/v4/runners/4711", nil, 403},
		{"POST", "/api/v4/runners/reset_authentication_token", tok, 403},
		{"POST", "/api/v4/runners/4711/reset_authentication_token", nil, 403},
		{"PUT", "/api/v4/runners/4711", map[string]bool{"paused": true}, 204},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			w := newWorld(t, simgitlab.Config{})
			w.Enqueue(simgitlab.JobSpec{})
			if code, _, b := w.call(t.Context(), c.method, c.path, c.body, "Private-Token", simgitlab.DefaultWriteToken); code >= 300 {
				t.Fatalf("call = %d %s", code, b)
			}
			if code, _, _ := w.poll(t.Context(), "s_aaa", ""); code != c.poll {
				t.Errorf("poll after it = %d, want %d", code, c.poll)
			}
			if d := w.Ledger().Damage; len(d) != 1 {
				t.Errorf("damage = %+v", d)
			}
		})
	}
}

func TestAnUntouchedJobIsFailedAfterAnHour(t *testing.T) {
	now := time.Now()
	w := newWorld(t, simgitlab.Config{Now: func() time.Time { return now }})
	p := w.take("s_aaa", simgitlab.JobSpec{})
	now = now.Add(59 * time.Minute)
	c := w.client(simgitlab.DefaultUserToken)
	if j, _, err := c.Jobs.GetJob(p.JobInfo.ProjectID, p.ID); err != nil || j.Status != "running" {
		t.Fatalf("after 59 min: %+v, %v", j, err)
	}
	now = now.Add(time.Minute)
	j, _, err := c.Jobs.GetJob(p.JobInfo.ProjectID, p.ID)
	if err != nil || j.Status != "failed" || j.FailureReason != "stuck_or_timeout_failure" {
		t.Fatalf("after 60 min: %+v, %v", j, err)
	}
}
