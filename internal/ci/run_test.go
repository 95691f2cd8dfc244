package ci_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	junit "github.com/joshdk/go-junit"

	"gitlab.com/sluice-runners/sluice/test/component/stage"
)

func TestAJobRecreatesTwoVMsInOneRequest(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{})
	j := newJob(t, s.URL, "runner-01", "runner-02")
	if status := j.run(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	if err := s.World.DamageTo("runner-01", "runner-02"); err != nil {
		t.Error(err)
	}
	if n := s.Calls("POST operations"); n != 1 {
		t.Errorf("%d requests, want one for both", n)
	}
	j.says("asks "+s.URL+" to recreate 2 VMs", "shared/runner-01: recreate succeeded in ", "shared/runner-02: recreate succeeded in ", "exit status 0: done")
	j.want(junit.StatusPassed, "runner-01", "runner-02")
	v := j.variables()
	if v["SLUICE_STATE"] != "succeeded" || v["SLUICE_RUNNER_01_STATE"] != "succeeded" || !strings.HasPrefix(v["SLUICE_RUNNER_02_ID"], "op-") {
		t.Errorf("dotenv: %v", v)
	}
	if url := j.links()["shared/runner-01: succeeded"]; url != s.URL+"/api/v1/operations/"+v["SLUICE_RUNNER_01_ID"] {
		t.Errorf("annotations: %v", j.links())
	}
	sections(t, j.log.String(), "runner-01", "runner-02")
}

// sections wants a section for each VM, each with its end, none within
// another, and no line twice.
func sections(t *testing.T, log string, vms ...string) {
	t.Helper()
	marker := regexp.MustCompile(`\x1b\[0Ksection_(start|end):\d+:([a-z0-9_.-]+)\r\x1b\[0K(.*)`)
	open, headers := "", map[string]bool{}
	for line := range strings.Lines(log) {
		found := marker.FindStringSubmatch(line)
		switch {
		case found == nil:
		case found[1] == "start" && open == "":
			open = found[2]
			headers[strings.Fields(found[3])[0]] = true
		case found[1] == "end" && open == found[2]:
			open = ""
		default:
			t.Errorf("a section within another, or an end without a start: %q", line)
		}
	}
	if open != "" {
		t.Errorf("section %s never ends", open)
	}
	for _, vm := range vms {
		if !headers[stage.Fleet+"/"+vm] {
			t.Errorf("no section for %s: %v", vm, headers)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "\x1b") && seen[line] {
			t.Errorf("said twice: %q", line)
		}
		seen[line] = true
	}
}

func TestAVMThatFailsItsGateFailsTheJobWithItsReason(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{Gate: 3 * time.Second})
	s.BadImage("runner-01")
	j := newJob(t, s.URL, "runner-01")
	if status := j.run(); status != 1 {
		t.Fatalf("exit status %d, want 1", status)
	}
	j.says("✗ shared/runner-01: recreate failed in ", "reason: ", "exit status 1: failed")
	j.want(junit.StatusFailed, "runner-01")
	var reason string
	for line := range strings.Lines(j.log.String()) {
		if _, text, ok := strings.Cut(line, "reason: "); ok {
			reason = strings.TrimSpace(text)
		}
	}
	if text := j.cases()["runner-01"].Error.Error(); reason == "" || !strings.Contains(text, reason) {
		t.Errorf("JUnit says %q, the log %q", text, reason)
	}
	if state := j.variables()["SLUICE_STATE"]; state != "failed" {
		t.Errorf("dotenv: %s", state)
	}
}

func TestACutJobHasAnExitStatusOfItsOwn(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{MinJob: 20 * time.Minute, MaxJob: 30 * time.Minute})
	j := newJob(t, s.URL, "runner-01")
	j.Order.Cap, j.Order.OnOverrun = "1s", "proceed"
	if status := j.run(); status != 3 {
		t.Fatalf("exit status %d, want 3", status)
	}
	j.says("a job was cut: job ", "exit status 3: done, but a job was cut")
	j.want(junit.StatusFailed, "runner-01")
	if state := j.variables()["SLUICE_STATE"]; state != "job_cut" {
		t.Errorf("dotenv: %s", state)
	}
}

func TestARetriedJobAttachesToWhatRuns(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{MinJob: 5 * time.Second, MaxJob: 6 * time.Second})
	first := newJob(t, s.URL, "runner-01")
	first.Detach = true
	if status := first.run(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	first.want(junit.StatusSkipped, "runner-01")
	awaitPhase(t, s, first.variables()["SLUICE_OPERATIONS"], "draining")
	second := newJob(t, s.URL, "runner-01")
	if status := second.run(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	second.says("runs already")
	if a, b := first.variables()["SLUICE_OPERATIONS"], second.variables()["SLUICE_OPERATIONS"]; a != b || a == "" {
		t.Errorf("two operations: %s, then %s", a, b)
	}
	if s.Keys() != 1 {
		t.Errorf("%d Idempotency-Keys, want 1", s.Keys())
	}
	if err := s.World.DamageTo("runner-01"); err != nil {
		t.Error(err)
	}
}

func TestACanceledJobAbortsNothing(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{MinJob: 4 * time.Second, MaxJob: 5 * time.Second})
	j := newJob(t, s.URL, "runner-01")
	ended := make(chan int, 1)
	go func() { ended <- j.run() }()
	j.log.await(t, "draining")
	j.cancel()
	if status := <-ended; status != 130 {
		t.Errorf("exit status %d, want 130", status)
	}
	j.says("the job was canceled, and nothing else", "the controller goes on", "sluice op cancel op-")
	j.want(junit.StatusError, "runner-01")
	if state := j.variables()["SLUICE_STATE"]; state != "running" {
		t.Errorf("dotenv: %s", state)
	}
	again := newJob(t, s.URL, "runner-01")
	if status := again.run(); status != 0 {
		t.Errorf("the operation did not go on: exit status %d", status)
	}
	if again.variables()["SLUICE_OPERATIONS"] != j.variables()["SLUICE_OPERATIONS"] {
		t.Error("the next try began another operation")
	}
	if n := s.Calls("POST cancel"); n != 0 {
		t.Errorf("%d cancels were sent", n)
	}
}
