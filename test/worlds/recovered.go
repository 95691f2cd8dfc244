package worlds

import (
	"fmt"
	"slices"
	"time"
)

// hindrance is for how long after it ended something that went wrong is felt:
// limits of calls, backoffs.
const hindrance = 30 * time.Second

// harmless are the acts that keep no recovery waiting.
var harmless = map[string]bool{
	"job at stop": true, "cancel": true, "undrain": true, "resume": true, "cancel job": true, "retry job": true, "cancel pipeline": true,
	"fail create": true, "fail delete": true, "lose create": true, "lose delete": true, "late create": true, "late delete": true,
	"linger disk": true, "bad image": true, "cloud down": true, "cloud blind": true, "start unit": true, "stop unit": true,
}

// Recoveries tells how soon orphans were queued again: from GitLab's commit of
// their assignment, and from the end of the runner where that came later. The
// first counts a drain that waits for another job of the VM: until the runner
// has ended nobody can tell that it did not receive the job.
func (s *Sum) Recoveries() string {
	var commit, end, hindered []time.Duration
	for _, r := range s.Recovered {
		if r.Hindered {
			hindered = append(hindered, r.SinceCommit)
			continue
		}
		commit, end = append(commit, r.SinceCommit), append(end, r.SinceEnd)
	}
	return fmt.Sprintf("%d orphans, %d recovered: %d while nothing was out of order: %s after GitLab's commit; %s after that and the end of the runner; %d others: %s after the commit",
		s.Orphaned, len(s.Recovered), len(commit), spread(commit), spread(end), len(hindered), spread(hindered))
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
