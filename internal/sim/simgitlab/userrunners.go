package simgitlab

import (
	"net/http"
	"slices"
)

// getRunner is GET /runners/:id.
func (s *Server) getRunner(w http.ResponseWriter, r *http.Request, u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.reading()
	ru := s.findRunner(w, r, st)
	if ru == nil {
		return
	}
	if u.Role == RoleNone {
		noAccess(w)
		return
	}
	e := s.runnerEntity(st, ru)
	e["projects"] = runnerProjects(st, ru, u)
	writeJSON(w, http.StatusOK, e)
}

// listManagers is GET /runners/:id/managers: a plain array, never paginated,
// with no project filter.
func (s *Server) listManagers(w http.ResponseWriter, r *http.Request, u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.reading()
	ru := s.findRunner(w, r, st)
	if ru == nil {
		return
	}
	if u.Role == RoleNone {
		noAccess(w)
		return
	}
	out := []managerEntity{}
	for _, m := range st.managersOf(ru.spec.ID) {
		out = append(out, s.managerEntity(st, m))
	}
	writeJSON(w, http.StatusOK, out)
}

// listRunnerJobs is GET /runners/:id/jobs, with the silent filter on the
// projects the caller can see and an empty array for an unknown system_id.
func (s *Server) listRunnerJobs(w http.ResponseWriter, r *http.Request, u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.reading()
	ru := s.findRunner(w, r, st)
	if ru == nil {
		return
	}
	if u.Role != RoleAdmin && u.Role != RoleOwner {
		noAccess(w)
		return
	}
	q := r.URL.Query()
	status := q.Get("status")
	if status != "" && !slices.Contains(statusEnum, status) {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "status does not have a valid value"})
		return
	}
	systemID := q.Get("system_id")
	m := st.managerBySystemID(ru.spec.ID, systemID)
	jobs := st.jobsOf(func(j *job) bool {
		if j.runnerID != ru.spec.ID || status != "" && j.status != status || !u.sees(j.spec.Project) {
			return false
		}
		return systemID == "" || m != nil && j.managerID == m.id
	})
	base := s.baseURL(r)
	page := s.paginate(w, r, jobs, systemID == "")
	out := []jobBasic{}
	for _, j := range page {
		out = append(out, s.jobBasic(st, base, j))
	}
	writeJSON(w, http.StatusOK, out)
}
