package fleet

import (
	"strings"
	"testing"
)

// A person reads the reason in `op show`: it names what is waited for.
func TestDecisionSaysWhatItWaitsFor(t *testing.T) {
	good := worldWords{
		host: hostWords{answered: true, unit: "inactive", result: "success", boot: "same", dropIn: true, containers: "none"},
		cap:  "inside", gitlab: "idle", provider: "running",
		overrun: OverrunProceed, unreachable: UnreachableFail, unproven: UnprovenAbort,
	}
	busyHost := func(w *worldWords) { w.host.unit, w.host.pid = "deactivating", true }
	for name, test := range map[string]struct {
		change func(*worldWords)
		want   string
	}{
		"drained":           {func(*worldWords) {}, "the runner process is gone with the drop-in in effect, and GitLab agrees"},
		"without a token":   {func(w *worldWords) { w.noGitLab = true }, "GitLab was not asked: no token"},
		"an odd end":        {func(w *worldWords) { w.host.unit, w.host.result = "failed", "timeout" }, "systemd's result is timeout"},
		"job by link":       {func(w *worldWords) { busyHost(w); w.gitlab = "running" }, "job 42 (https://gitlab.example.com/g/p/-/jobs/42)"},
		"job by container":  {func(w *worldWords) { busyHost(w); w.gitlab, w.host.containers = "not asked", "some" }, "container runner-42"},
		"job not known":     {busyHost, "no job is known yet"},
		"past the cap":      {func(w *worldWords) { busyHost(w); w.cap = "at the cap" }, "the cap of 10m0s has passed"},
		"out of reach":      {func(w *worldWords) { w.host = hostWords{} }, "the host cannot be reached: connection refused"},
		"long out of reach": {func(w *worldWords) { w.host, w.silence = hostWords{}, "long" }, "out of reach for 10m0s: connection refused"},
		"off":               {func(w *worldWords) { w.host, w.provider = hostWords{}, "off" }, "the provider says the instance is off"},
		"not begun":         {func(w *worldWords) { w.cap = "not begun" }, "intake has not been stopped yet"},
		"rebooted":          {func(w *worldWords) { w.host.boot = "changed" }, "the host was rebooted"},
		"drop-in gone":      {func(w *worldWords) { w.host.dropIn = false }, "the drain drop-in is not in effect"},
		"started by hand":   {func(w *worldWords) { w.host.unit, w.host.pid = "active", true }, "the unit is active/"},
		"stays open":        {func(w *worldWords) { w.host.dropIn, w.cap, w.again = false, "at the cap", true }, "intake does not stay stopped"},
		"incomplete":        {func(w *worldWords) { w.host.unit = "" }, "the host's answer is incomplete"},
		"GitLab down":       {func(w *worldWords) { w.gitlab = "error" }, "GitLab's answer is unknown: 502 Bad Gateway"},
		"result under way":  {func(w *worldWords) { w.gitlab, w.stopped = "running", "short" }, "its last result is on its way to GitLab"},
		"orphan":            {func(w *worldWords) { w.gitlab, w.stopped = "running", "long" }, "which the orphan watch takes over"},
		"cut":               {func(w *worldWords) { w.gitlab, w.stopped, w.host.result = "running", "long", "exit-code" }, "was cut by somebody else"},
		"leftovers":         {func(w *worldWords) { w.host.containers = "some" }, "containers are left: runner-42"},
		"time up":           {func(w *worldWords) { w.gitlab, w.cap = "error", "at the cap" }, "its time is up"},
		"another":           {func(w *worldWords) { w.provider = "another running" }, "shared/runner-01: evidence is about instance i-new, not i-old"},
	} {
		w := good
		test.change(&w)
		s := w.snapshot(readings{w.host.reading(), gitlabReadings()[w.gitlab], providerReadings()[w.provider]})
		if d := Decide(&s); !strings.Contains(d.Reason, test.want) {
			t.Errorf("%s: row %d says %q, want %q", name, d.Row, d.Reason, test.want)
		}
	}
}

func TestIncompleteAnswerSaysWhatIsMissing(t *testing.T) {
	host := hostWords{answered: true, boot: "same"}.reading()
	host.Problem = "systemctl show answered nothing"
	d := Decide(&Snapshot{Now: testNow, Expected: testExpected, Policy: DefaultDrainPolicy(), Host: host})
	if d.Row != 3 || !strings.HasSuffix(d.Reason, host.Problem) {
		t.Errorf("got %s", d.short())
	}
}

// The table has a row for everything, so the line after it is out of reach.
// It must still be safe if somebody breaks the table.
func TestDecisionWithoutARowWaits(t *testing.T) {
	if d := decideBy(nil, &Snapshot{}); d.Action != ActWait || d.Wait <= 0 || d.Row != 0 {
		t.Errorf("without a row: %s", d.short())
	}
}

// cases.md T16, T24: GitLab does not list a job that it has assigned and that the
// runner has not acknowledged, and lists none for a moment after the assignment
// and after a forced cancel. While the process runs, its idle is not asked for.
func TestARunningProcessIsBusyThoughGitLabListsNoJob(t *testing.T) {
	for _, unit := range []string{"deactivating", "inactive"} {
		for _, containers := range []string{"none", "some"} {
			w := worldWords{
				host: hostWords{answered: true, unit: unit, result: "success", pid: true, boot: "same", dropIn: true, containers: containers},
				cap:  "inside", overrun: OverrunProceed, unreachable: UnreachableFail, unproven: UnprovenAbort,
			}
			s := w.snapshot(readings{w.host.reading(), gitlabReadings()["idle"], providerReadings()["running"]})
			if d := Decide(&s); d.Row != 5 || d.Action != ActHold {
				t.Errorf("%s, containers %s: %s", unit, containers, d.short())
			}
		}
	}
}
