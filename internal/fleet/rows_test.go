package fleet

import (
	"testing"
	"time"
)

// One row of the table at a time, where the walk over the whole cross product
// (product_test.go) takes long to say so.

// stoppedHost is a drain that is over but for what a test changes.
func stoppedHost(change func(*worldWords)) Decision {
	w := worldWords{
		host: hostWords{answered: true, unit: "inactive", result: "success", boot: "same", dropIn: true, containers: "none"},
		cap:  "inside", gitlab: "idle", provider: "running", stopped: "short",
		overrun: OverrunProceed, unreachable: UnreachableFail, unproven: UnprovenAbort,
	}
	change(&w)
	s := w.snapshot(readings{w.host.reading(), gitlabReadings()[w.gitlab], providerReadings()[w.provider]})
	return Decide(&s)
}

func TestIntakeIsOpenUnlessItWasStoppedInThisBootAndStaysSo(t *testing.T) {
	if d := stoppedHost(func(*worldWords) {}); d.Action != ActDrained {
		t.Fatalf("stopped and idle: %s", d.short())
	}
	for name, change := range map[string]func(*worldWords){
		"rebooted":               func(w *worldWords) { w.host.boot = "changed" },
		"the drop-in is gone":    func(w *worldWords) { w.host.dropIn = false },
		"started again":          func(w *worldWords) { w.host.unit, w.host.pid = "active", true },
		"about to be started":    func(w *worldWords) { w.host.unit = "activating" },
		"starting":               func(w *worldWords) { w.host.unit, w.host.pid = "activating", true },
		"not stopped by us ever": func(w *worldWords) { w.cap = "not begun" },
	} {
		if d := stoppedHost(change); d.Action != ActStopIntake {
			t.Errorf("%s: %s", name, d.short())
		}
	}
}

// Promise 5: GitLab is asked after the process is gone, or its word is unknown.
func TestWhatGitLabSaidBeforeTheExitIsUnknown(t *testing.T) {
	s := Snapshot{StoppedSince: testNow, GitLab: gitlabReadings()["idle"]}
	reading := *s.GitLab
	s.GitLab = &reading
	for before, want := range map[time.Duration]Busy{0: BusyIdle, time.Millisecond: BusyUnknown, time.Hour: BusyUnknown} {
		reading.TakenAt = testNow.Add(-before)
		if got := s.gitlabBusy(); got != want {
			t.Errorf("taken %s before the exit: %s, want %s", before, got, want)
		}
	}
}

// Promise 1: the runner ends when GitLab has accepted its last result, and GitLab
// shows it a moment later.
func TestALastResultHasTenSecondsToReachGitLab(t *testing.T) {
	early := stoppedHost(func(w *worldWords) { w.gitlab, w.stopped = "running", "short" })
	late := stoppedHost(func(w *worldWords) { w.gitlab, w.stopped = "running", "long" })
	if early.Action != ActWait || early.Row != 7 || late.Action != ActDrained || ResultGrace != 10*time.Second {
		t.Errorf("early: %s; late: %s; %s", early.short(), late.short(), ResultGrace)
	}
}

// Promise 5: the provider may be late or wrong; a process that runs is not
// drained by its word.
func TestAHostThatAnswersIsDrainedWhateverTheProviderSays(t *testing.T) {
	for _, says := range []string{"absent", "off"} {
		d := stoppedHost(func(w *worldWords) { w.provider, w.host.unit, w.host.pid = says, "deactivating", true })
		if d.Action != ActHold {
			t.Errorf("%s: %s", says, d.short())
		}
		if d := stoppedHost(func(w *worldWords) { w.provider, w.host = says, hostWords{} }); d.Action != ActDrained {
			t.Errorf("%s, and no host answers: %s", says, d.short())
		}
	}
}
