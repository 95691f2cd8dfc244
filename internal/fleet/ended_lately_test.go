package fleet

import (
	"testing"
	"time"
)

// A stuck job is failed after an hour: until a while after that, GitLab may show
// one of a runner that has ended. Seeds 81391 and 91380 of the worlds.
func TestARunnerEndedLatelyWhereGitLabMayStillShowAJobOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		ended  time.Duration // ago; 0 = none has run in this boot
		result string
		want   bool
	}{
		"just now":                      {time.Nanosecond, "success", true},
		"almost 15 minutes ago":         {15*time.Minute - time.Second, "success", true},
		"15 minutes ago":                {15 * time.Minute, "success", false},
		"yesterday":                     {24 * time.Hour, "success", false},
		"none has in this boot":         {0, "success", false},
		"it was killed":                 {time.Minute, "signal", true},
		"it did not stop in time":       {time.Minute, "timeout", true},
		"it could not start, or failed": {time.Minute, "exit-code", false},
	} {
		f := HostFacts{Ended: c.ended, Reading: HostReading{Unit: UnitState{Result: c.result}}}
		if got := f.EndedLately(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
