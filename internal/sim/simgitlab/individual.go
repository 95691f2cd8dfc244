package simgitlab

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Register makes a runner entry of one VM's own, as its create script does with
// POST /user/runners.
func (s *Server) Register(description string) RunnerSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id()
	spec := RunnerSpec{
		ID: id, Token: fmt.Sprintf("glrt-sim-own-%d", id), Description: description, Type: "group_type", Individual: true,
	}
	s.st.runners[id] = &runner{spec: spec, createdAt: s.now(), updatedAt: s.now()}
	return spec
}

// Rename changes an entry's description, as a person may at any time.
func (s *Server) Rename(id int64, description string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ru := s.st.runners[id]; ru != nil {
		ru.spec.Description, ru.updatedAt = description, s.now()
	}
}

// Entries lists the individual entries that there are, by id.
func (s *Server) Entries() []RunnerSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []RunnerSpec
	for _, ru := range s.st.runners {
		if ru.spec.Individual && !ru.deleted {
			list = append(list, ru.spec)
		}
	}
	slices.SortFunc(list, func(a, b RunnerSpec) int { return int(a.ID - b.ID) })
	return list
}

// deleteRunnerByID is DELETE /runners/:id. It ends a whole fleet, but for an
// individual entry whose VM is gone.
func (s *Server) deleteRunnerByID(w http.ResponseWriter, r *http.Request, u User) {
	s.byID(w, r, u, func(ru *runner) {
		if since, err := http.ParseTime(r.Header.Get("If-Unmodified-Since")); err == nil && ru.updatedAt.Truncate(time.Second).After(since) {
			message(w, http.StatusPreconditionFailed, "412 Precondition Failed")
			return
		}
		s.remove(ru)
		w.WriteHeader(http.StatusNoContent)
	})
}

// remove deletes an entry and says whether that hurt; the lock is held.
func (s *Server) remove(ru *runner) {
	const route = "DELETE /runners/:id"
	if !ru.spec.Individual {
		s.kill(route, ru)
		return
	}
	for _, m := range s.st.managersOf(ru.spec.ID) {
		if _, gone := s.gone[m.systemID]; !gone {
			s.kill(route, ru)
			return
		}
	}
	s.removed = append(s.removed, ru.spec.ID)
	s.drop(ru)
}
