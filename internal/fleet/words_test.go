package fleet

import (
	"strings"
	"testing"
)

func TestAHostReadingIsToldInWords(t *testing.T) {
	running := UnitState{ActiveState: "deactivating", Result: "success", MainPID: 77}
	stopped := UnitState{ActiveState: "inactive", Result: "success"}
	ours := DropIn{Present: true, Effective: true}
	for want, h := range map[string]HostReading{
		"systemd gave an empty answer: it re-executes":   {Problem: "it re-executes"},
		"gitlab-runner serves (unit active, process 77)": {Unit: UnitState{ActiveState: "active", MainPID: 77}},
		"gitlab-runner takes no new job and ends when its last one has (unit deactivating, process 77, drain drop-in in effect); containers: of job 42": {Unit: running, DropIn: ours, ContainersKnown: true, Containers: []Container{{Name: "build", JobID: 42}, {Name: "helper", JobID: 42}, {Name: "x"}}},
		"gitlab-runner is being stopped, and not by this drain (unit deactivating, process 77, drain drop-in there, but not in effect)":                 {Unit: running, DropIn: DropIn{Present: true}},
		"gitlab-runner has ended (unit inactive, no process, drain drop-in in effect); no container is left":                                            {Unit: stopped, DropIn: ours, ContainersKnown: true},
		"gitlab-runner has ended (unit inactive, no process); containers: left":                                                                         {Unit: stopped, ContainersKnown: true, Containers: []Container{{Name: "left"}}},
		"gitlab-runner has ended (unit failed, no process, systemd's result is signal); the answer is incomplete: podman hangs":                         {Unit: UnitState{ActiveState: "failed", Result: "signal"}, Problem: "podman hangs"},
		"gitlab-runner neither serves nor has ended (unit activating, no process)":                                                                      {Unit: UnitState{ActiveState: "activating"}},
	} {
		if h.Subject.BootID = "b"; h.Words() != want {
			t.Errorf("%q, want %q", h.Words(), want)
		}
	}
}

// A glance sees less than a look and is no news: its words are a beginning.
func TestAGlanceSaysABeginningOfWhatALookSays(t *testing.T) {
	for _, words := range hostProduct() {
		look := words.reading()
		if look == nil || !look.ContainersKnown {
			continue
		}
		glance := *look
		glance.Containers, glance.ContainersKnown = nil, false
		if !strings.HasPrefix(look.Words(), glance.Words()) {
			t.Errorf("%q is not the beginning of %q", glance.Words(), look.Words())
		}
	}
}

func TestAGitLabReadingIsToldInWords(t *testing.T) {
	for name, want := range map[string]string{
		"error":           "no usable answer: 502 Bad Gateway",
		"partial":         "no usable answer: page 2 did not come; shows job 42 (https://gitlab.example.com/g/p/-/jobs/42) running on it",
		"manager missing": "no usable answer: the manager is not listed",
		"two managers":    "no usable answer: 2 managers have this system_id",
		"no field":        "manager 7 is online; whether it runs a job is not said (job_execution_status is missing)",
		"idle":            "manager 7 is online and runs no job",
		"running":         "manager 7 is online and runs a job; shows job 42 (https://gitlab.example.com/g/p/-/jobs/42) running on it",
		"contradiction":   "manager 7 is online and runs no job; shows job 42 (https://gitlab.example.com/g/p/-/jobs/42) being canceled on it",
	} {
		if got := gitlabReadings()[name].Words(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestAProviderReadingIsToldInWords(t *testing.T) {
	for name, want := range map[string]string{
		"running": "instance i-old is running", "off": "instance i-old is off", "absent": "no instance of that name is listed",
		"in between": "instance i-old is neither running nor off", "another running": "instance i-new is running",
	} {
		if got := providerReadings()[name].Words(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestTwoErrorsThatDifferInDigitsAreAlike(t *testing.T) {
	if !Alike("read tcp 10.0.0.1:40000->10.0.0.2:22: reset", "read tcp 10.0.0.1:4->10.0.0.2:22: reset") {
		t.Error("another port made another error")
	}
	if Alike("connection refused", "connection reset") {
		t.Error("two errors are one")
	}
}
