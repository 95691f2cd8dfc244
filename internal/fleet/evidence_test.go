package fleet

import (
	"testing"
	"time"
)

func TestEvidenceAboutAnotherSubjectIsAnError(t *testing.T) {
	expected := testExpected
	for name, test := range map[string]struct {
		change func(*Subject)
		want   Code
	}{
		"the same":                       {func(*Subject) {}, ""},
		"a reboot of it is no other":     {func(s *Subject) { s.BootID = "boot-2" }, ""},
		"another manager id is no other": {func(s *Subject) { s.Manager = 99 }, ""},
		"unknown parts match":            {func(s *Subject) { s.Incarnation = Incarnation{} }, ""},
		"another VM":                     {func(s *Subject) { s.VM = "runner-02" }, CodeConflict},
		"another fleet":                  {func(s *Subject) { s.Fleet = "other" }, CodeConflict},
		"another incarnation":            {func(s *Subject) { s.Instance = "i-new" }, CodeConflict},
		"another host":                   {func(s *Subject) { s.SystemID = "s_new" }, CodeConflict},
	} {
		got := expected
		test.change(&got)
		err := expected.Check(got)
		if CodeOf(err) != test.want {
			t.Errorf("%s: got %v, want code %q", name, err, test.want)
		}
		if expected.is(&got) != (err == nil) {
			t.Errorf("%s: Check says %v, the table sees it differently", name, err)
		}
	}
}

// Case T53: two hosts with one system_id look like one manager.
func TestBusyIsIdleOnlyIfEverythingAgrees(t *testing.T) {
	job := []Job{testJob}
	combinations := 0
	for _, unknown := range []string{"", "timeout"} {
		for _, present := range bools {
			for _, claims := range []int{0, 1} {
				for _, execution := range []Execution{ExecutionUnknown, ExecutionIdle, ExecutionActive, "paused"} {
					for _, running := range [][]Job{nil, job} {
						for _, canceling := range [][]Job{nil, job} {
							combinations++
							g := &GitLabReading{
								Unknown: unknown, Present: present, OtherClaims: claims,
								Manager: Manager{Execution: execution}, Running: running, Canceling: canceling,
							}
							usable := unknown == "" && claims == 0
							active := execution == ExecutionActive || running != nil || canceling != nil
							want := BusyUnknown
							if usable && active {
								want = BusyActive
							}
							if usable && !active && present && execution == ExecutionIdle {
								want = BusyIdle
							}
							if got := g.Busy(); got != want {
								t.Errorf("%+v: got %s, want %s", g, got, want)
							}
							if got, want := len(g.Executing()), len(running)+len(canceling); got != want {
								t.Errorf("%+v: %d jobs executing, want %d", g, got, want)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("Busy: %d combinations", combinations)
}

func TestNoReadingIsUnknownAndListsNothing(t *testing.T) {
	var none *GitLabReading
	if got := none.Busy(); got != BusyUnknown {
		t.Errorf("no reading at all is %s", got)
	}
	if got := none.Executing(); got != nil {
		t.Errorf("no reading lists %v", got)
	}
}

func TestUnitIsStoppedOnlyWithItsProcessGone(t *testing.T) {
	for _, state := range []string{"", "active", "reloading", "activating", "deactivating", "inactive", "failed", "maintenance"} {
		for _, pid := range []int{0, 4242} {
			u := UnitState{ActiveState: state, MainPID: pid}
			if got, want := u.Stopped(), pid == 0 && (state == "inactive" || state == "failed"); got != want {
				t.Errorf("%q with main pid %d: stopped %t, want %t", state, pid, got, want)
			}
			if got, want := u.Known(), state != ""; got != want {
				t.Errorf("%q: known %t, want %t", state, got, want)
			}
		}
	}
}

func TestHostAnswerIsCompleteOnlyWithEveryPart(t *testing.T) {
	whole := hostWords{answered: true, unit: "inactive", boot: "same", dropIn: true, containers: "none"}
	for name, test := range map[string]struct {
		change func(*hostWords)
		want   bool
	}{
		"whole":                       {func(*hostWords) {}, true},
		"systemctl answered empty":    {func(h *hostWords) { h.unit = "" }, false},
		"no boot id":                  {func(h *hostWords) { h.boot = "missing" }, false},
		"podman silent, process gone": {func(h *hostWords) { h.containers = "unknown" }, false},
		"podman silent, process there all the same": {func(h *hostWords) { h.containers, h.unit, h.pid = "unknown", "deactivating", true }, true},
	} {
		h := whole
		test.change(&h)
		if got := h.reading().Complete(); got != test.want {
			t.Errorf("%s: complete %t, want %t", name, got, test.want)
		}
	}
}

// A later systemd may know states that we do not: they are not "stopped".
func TestUnheardOfUnitStateIsOpenIntake(t *testing.T) {
	for _, state := range []string{"reloading", "refreshing", "maintenance", "something-new"} {
		w := worldWords{
			host: hostWords{answered: true, unit: state, boot: "same", dropIn: true, containers: "none"},
			cap:  "inside", overrun: OverrunProceed, unreachable: UnreachableFail, unproven: UnprovenAbort,
		}
		s := w.snapshot(readings{host: w.host.reading()})
		if d := Decide(&s); d.Action != ActStopIntake {
			t.Errorf("%s: %s", state, d.short())
		}
	}
}

func TestRestartOfTheClockChangesNoEvidence(t *testing.T) {
	zero := Snapshot{Now: testNow}
	if zero.pastCap() || zero.pastHardCap() {
		t.Error("a cap that has not begun has passed")
	}
	zero.Deadline, zero.HardCap = testNow.Add(time.Nanosecond), testNow.Add(time.Nanosecond)
	if zero.pastCap() || zero.pastHardCap() {
		t.Error("a cap has passed before its deadline")
	}
}
