package worlds

import (
	"fmt"
	"slices"
	"time"
)

// Recoveries tells how soon orphans were queued again: from GitLab's commit of
// their assignment, and from the end of the runner where that came later. The
// first counts a drain that waits for another job of the VM: until the runner
// has ended nobody can tell that it did not receive the job.
func (s *Sum) Recoveries() string {
	var commit, end []time.Duration
	for _, r := range s.Recovered {
		commit, end = append(commit, r.SinceCommit), append(end, r.SinceEnd)
	}
	return fmt.Sprintf("%d orphans, %d recovered: %s after GitLab's commit; %s after that and the end of the runner",
		s.Orphaned, len(s.Recovered), spread(commit), spread(end))
}

func spread(list []time.Duration) string {
	if len(list) == 0 {
		return "none"
	}
	slices.Sort(list)
	at := func(share float64) time.Duration {
		return list[min(int(share*float64(len(list))), len(list)-1)].Round(100 * time.Millisecond)
	}
	return fmt.Sprintf("p50 %s, p99 %s, most %s", at(0.5), at(0.99), list[len(list)-1].Round(100*time.Millisecond))
}
