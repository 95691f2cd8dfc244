package simgitlab

import (
	"net/http"
)

// verifyRunner is POST /runners/verify: it makes or refreshes the manager.
func (s *Server) verifyRunner(w http.ResponseWriter, r *http.Request) {
	c, ok := readRunnerCall(r)
	if !ok {
		message(w, http.StatusBadRequest, "400 Bad request")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ru := s.runnerByToken(c.Token)
	if ru == nil {
		forbiddenToken(w)
		return
	}
	s.heartbeat(ru, c, r)
	writeJSON(w, http.StatusOK, map[string]any{
		"id": ru.spec.ID, "token": ru.spec.Token, "token_expires_at": timeOrNil(ru.spec.TokenExpiresAt),
	})
}

// deleteManager is DELETE /runners/managers: it removes one manager only; the
// shared token stays valid.
func (s *Server) deleteManager(w http.ResponseWriter, r *http.Request) {
	c, ok := readRunnerCall(r)
	if !ok || c.Token == "" || c.SystemID == "" {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "token, system_id are missing"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ru := s.runnerByToken(c.Token)
	if ru == nil {
		forbiddenToken(w)
		return
	}
	m := s.st.managerBySystemID(ru.spec.ID, c.SystemID)
	if m == nil {
		message(w, http.StatusNotFound, "404 Runner manager not found Not Found")
		return
	}
	delete(s.st.managers, m.id)
	w.WriteHeader(http.StatusNoContent)
}

// routerDiscovery is GET /runners/router/discovery: 403 for a dead token; a
// living one gets 200, or 501 where the feature is off. No heartbeat.
func (s *Server) routerDiscovery(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.runnerByToken(r.Header.Get("Runner-Token")) == nil:
		forbiddenToken(w)
	case s.switches.NoRouter:
		message(w, http.StatusNotImplemented, "501 Not Implemented")
	default:
		writeJSON(w, http.StatusOK, map[string]string{"server_url": "wss://" + r.Host})
	}
}
