package fleet

import (
	"strings"
	"testing"
	"time"
)

// By GitLab's clock, which need not be ours, and to within the 30 s that the two
// are compared to. Seed 179058 of the worlds.
func TestAManagerOutlivesItsVMThatContactsGitLabAfterThatIsGone(t *testing.T) {
	gone := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		contact time.Duration // after gone, by our clock
		offset  time.Duration // GitLab's clock minus ours
		want    bool
	}{
		"before":                            {-time.Minute, 0, false},
		"just then":                         {0, 0, false},
		"within the slack":                  {30 * time.Second, 0, false},
		"past the slack":                    {31 * time.Second, 0, true},
		"much later":                        {time.Hour, 0, true},
		"before, GitLab's clock ahead":      {-time.Minute, 40 * time.Minute, false},
		"within, GitLab's clock ahead":      {30 * time.Second, 40 * time.Minute, false},
		"past it, GitLab's clock ahead":     {31 * time.Second, 40 * time.Minute, true},
		"within, GitLab's clock behind":     {30 * time.Second, -40 * time.Minute, false},
		"past it, GitLab's clock behind":    {31 * time.Second, -40 * time.Minute, true},
		"much later, GitLab's clock behind": {time.Hour, -2 * time.Hour, true},
	} {
		at := gone.Add(c.contact + c.offset)
		why := Manager{ContactedAt: at}.Outlives(gone, c.offset)
		if (why != "") != c.want || c.want && !strings.HasSuffix(why, "since its VM is gone, at "+at.Format(time.RFC3339)) {
			t.Errorf("%s: %q", name, why)
		}
	}
	if why := (Manager{}).Outlives(gone, 0); why != "" {
		t.Errorf("never contacted: %q", why)
	}
}
