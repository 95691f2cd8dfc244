package gitlab

import (
	"context"
	"fmt"
	"net/http"
)

const (
	projectRunner = "project_type"
	reporter      = 20 // GitLab's access levels
	developer     = 30
	// mostProjects are looked at; a project runner has few.
	mostProjects = 50
)

// UnseenProjects lists those projects of a project runner in which the user of
// the token is less than a Reporter: GitLab drops their jobs from its answers
// without a word (facts/gitlab.md 1.3). Projects in which that user has no role
// at all are not in the entry's details, so they cannot be named. For other
// kinds of runner, and for an administrator, who sees everything, there are
// none. Errors: as for readings.
func (e *Entry) UnseenProjects(ctx context.Context) ([]string, error) {
	d, err := e.details(ctx, e.in.cfg.Now())
	if err != nil || d.RunnerType != projectRunner {
		return nil, err
	}
	me, _, err := get[struct {
		IsAdmin bool `json:"is_admin"`
	}](ctx, e.in, call{what: "say whose the token is", client: e.in.user, method: http.MethodGet, path: "user"})
	if err != nil || me.IsAdmin {
		return nil, err
	}
	var unseen []string
	for _, p := range d.Projects[:min(len(d.Projects), mostProjects)] {
		seen, err := e.in.atLeast(ctx, p.ID, reporter)
		if err != nil {
			return nil, err
		}
		if !seen {
			unseen = append(unseen, p.Path)
		}
	}
	return unseen, nil
}

// atLeast says whether the token's user has the role or more in the project.
// The list counts every way of having it: member, group, invited group.
func (in *Instance) atLeast(ctx context.Context, project int64, role int) (bool, error) {
	list, _, err := get[[]struct {
		ID int64 `json:"id"`
	}](ctx, in, call{
		what: fmt.Sprintf("say the token's role in project %d", project), client: in.user, method: http.MethodGet, path: "projects",
		query: struct {
			After  int64 `url:"id_after"`
			Before int64 `url:"id_before"`
			Level  int   `url:"min_access_level"`
			Simple bool  `url:"simple"`
		}{project - 1, project + 1, role, true},
	})
	if err != nil {
		return false, err
	}
	return len(list) == 1 && list[0].ID == project, nil
}
