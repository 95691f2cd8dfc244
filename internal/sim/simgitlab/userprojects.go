package simgitlab

import (
	"net/http"
	"slices"
	"strconv"
)

// memberOf says whether the user has any role in the project.
func (u User) memberOf(path string) bool {
	return u.sees(path) || slices.Contains(u.Guest, path)
}

// runnerProjects is the list in the details of a project runner: those of its
// projects in which the caller has a role; all for who may read everything
// (lib/api/entities/ci/runner_details.rb).
func runnerProjects(st *state, ru *runner, u User) []projectEntity {
	list := []projectEntity{}
	for _, path := range ru.spec.Projects {
		if p := st.projectByPath(path); u.memberOf(path) {
			list = append(list, *projectOf(p))
		}
	}
	return list
}

// listProjects is GET /projects with min_access_level: those in which the
// caller's role is at least that. Of the roles it knows Guest (10), Reporter (20)
// and Developer (30). id_after and id_before bound the ids, both exclusive.
func (s *Server) listProjects(w http.ResponseWriter, r *http.Request, u User) {
	q := r.URL.Query()
	bound := func(key string, none int64) int64 {
		if n, err := strconv.ParseInt(q.Get(key), 10, 64); err == nil {
			return n
		}
		return none
	}
	after, before, level := bound("id_after", 0), bound("id_before", 1<<62), bound("min_access_level", 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []projectEntity{}
	for _, p := range s.reading().projects {
		mine := u.memberOf(p.path)
		if level >= 20 {
			mine = u.Role != RoleAdmin && u.sees(p.path) // an administrator is no member
		}
		if level >= 30 {
			mine = mine && u.develops(p.path)
		}
		if p.id > after && p.id < before && mine {
			list = append(list, *projectOf(p))
		}
	}
	slices.SortFunc(list, func(a, b projectEntity) int { return int(b.ID - a.ID) })
	writeJSON(w, http.StatusOK, list)
}

// whoami is GET /user; is_admin is shown to administrators only.
func (s *Server) whoami(w http.ResponseWriter, _ *http.Request, u User) {
	e := map[string]any{"id": 1, "username": u.Name, "name": u.Name, "state": "active"}
	if u.Role == RoleAdmin {
		e["is_admin"] = true
	}
	writeJSON(w, http.StatusOK, e)
}
