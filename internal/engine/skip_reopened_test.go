package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// A drain under `wait` whose intake had
// to be stopped again after the cap, and is open once more when somebody skips it:
// its jobs are told to end all the same.
func TestASkipAfterTheCapEndsTheJobsOfARunnerThatCameBack(t *testing.T) {
	for _, reboots := range []int{0, 1, 2} {
		w := enginetest.New("a")
		w.Job("a", 42, 10*time.Hour)
		id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) {
			r.Policy.Cap, r.Policy.OnOverrun = time.Minute, fleet.OverrunWait
		})
		w.Run(2 * time.Minute)
		for i := range reboots {
			w.Reboot("a")
			w.Job("a", 43+int64(i), 10*time.Hour)
			if i < reboots-1 {
				w.Run(time.Minute)
			}
		}
		if err := skipDrain(t, w, id); err != nil {
			t.Fatal(err)
		}
		w.Run(time.Hour)
		if story := w.Story(); !strings.Contains(story, "told to end its jobs (SIGTERM)") {
			t.Errorf("after %d reboots the job is cut without a word to its runner\n%s", reboots, story)
		}
	}
}
