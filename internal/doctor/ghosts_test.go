package doctor

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// cases.md T57, T59: a manager whose VM vanished is found from GitLab's side,
// too, while its last contact is fresh: each by its name.
func TestEveryManagerWithoutAVMIsNamed(t *testing.T) {
	w := newWard()
	for i, id := range []string{"s_ghost1", "s_ghost2", "s_ghost3"} {
		w.managers = append(w.managers, fleet.Manager{
			ID: int64(100 + i), SystemID: id, Status: "online", CreatedAt: noon.Add(-48 * time.Hour), ContactedAt: noon.Add(-time.Minute),
		})
	}
	named := map[string]bool{}
	for _, finding := range w.examine(t).Findings {
		for _, id := range []string{"s_ghost1", "s_ghost2", "s_ghost3"} {
			if finding.Code == CodeManagerWithoutVM && strings.Contains(finding.What, id) {
				named[id] = true
			}
		}
	}
	if len(named) != 3 {
		t.Errorf("named: %v", named)
	}
}
