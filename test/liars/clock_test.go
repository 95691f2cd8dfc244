package liars

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// Hours between GitLab's clock and ours move nothing: what is compared is
// compared by one clock. The new VM even has the old one's system_id, so that
// the times of contact alone tell it from the old one.
func TestAClockThatIsOffByHoursMovesNothing(t *testing.T) {
	for _, skew := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			play(t, func(t *testing.T) {
				s := newScene(t, []string{"a"}, func(c *simgitlab.Config) {
					ours := c.Now
					c.Now = func() time.Time { return ours().Add(skew) }
				})
				s.SameSystemID = true
				old := s.VM("a").ID
				s.run("a", 2*time.Minute)
				s.atStop(func() { s.assign("a", simgitlab.JobSpec{}) })
				id := s.Ask(fleet.KindRecreate, "a")
				s.Run(3 * time.Hour)
				s.mustReplace(id, "a", old)
				if s.Meter.Orphaned != 1 || s.Meter.CutJobs != 0 {
					t.Errorf("%d orphans and %d cut jobs found, want the one orphan\n%s", s.Meter.Orphaned, s.Meter.CutJobs, s.Story())
				}
			})
		})
	}
}
