package simgitlab

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// TokenDamage is a call that hurt a runner entry shared by a whole fleet.
type TokenDamage struct {
	At       time.Time `json:"at"`
	Route    string    `json:"route"`
	RunnerID int64     `json:"runner_id"`
	Effect   string    `json:"effect"`
}

// hurt writes the call into the ledger; the lock is held.
func (s *Server) hurt(route string, ru *runner, effect string) {
	s.damage = append(s.damage, TokenDamage{At: s.now(), Route: route, RunnerID: ru.spec.ID, Effect: effect})
}

// kill deletes the entry with all its managers; the lock is held.
func (s *Server) kill(route string, ru *runner) {
	s.hurt(route, ru, "runner entry deleted: the token is dead for every VM")
	s.drop(ru)
}

// drop takes the entry and its managers away; the lock is held.
func (s *Server) drop(ru *runner) {
	ru.deleted = true
	for id, m := range s.st.managers {
		if m.runnerID == ru.spec.ID {
			delete(s.st.managers, id)
		}
	}
	s.wakeQueue()
}

// rotate gives the entry a new token; the lock is held.
func (s *Server) rotate(w http.ResponseWriter, route string, ru *runner) {
	s.hurt(route, ru, "token rotated: every VM with the old one gets 403")
	ru.spec.Token = fmt.Sprintf("glrt-sim-rotated-%d", s.id())
	s.wakeQueue()
	writeJSON(w, http.StatusCreated, map[string]any{"token": ru.spec.Token, "token_expires_at": timeOrNil(ru.spec.TokenExpiresAt)})
}

func (s *Server) deleteRunnerByToken(w http.ResponseWriter, r *http.Request) {
	s.byToken(w, r, func(ru *runner) {
		s.kill("DELETE /runners", ru)
		w.WriteHeader(http.StatusNoContent)
	})
}

func (s *Server) resetOwnToken(w http.ResponseWriter, r *http.Request) {
	s.byToken(w, r, func(ru *runner) { s.rotate(w, "POST /runners/reset_authentication_token", ru) })
}

func (s *Server) resetTokenByID(w http.ResponseWriter, r *http.Request, u User) {
	s.byID(w, r, u, func(ru *runner) { s.rotate(w, "POST /runners/:id/reset_authentication_token", ru) })
}

// updateRunner is PUT /runners/:id; of its parameters only paused is known.
func (s *Server) updateRunner(w http.ResponseWriter, r *http.Request, u User) {
	var body struct {
		Paused *bool `json:"paused"`
	}
	_ = readJSON(r, &body) // a query parameter will do as well
	if v, err := strconv.ParseBool(r.URL.Query().Get("paused")); err == nil {
		body.Paused = &v
	}
	s.byID(w, r, u, func(ru *runner) {
		if body.Paused != nil && *body.Paused != ru.paused {
			ru.paused = *body.Paused
			s.hurt("PUT /runners/:id", ru, fmt.Sprintf("paused=%v for every VM", ru.paused))
			s.wakeQueue()
		}
		writeJSON(w, http.StatusOK, s.runnerEntity(s.st, ru))
	})
}

// byToken runs act on the entry whose own token the call bears, lock held.
func (s *Server) byToken(w http.ResponseWriter, r *http.Request, act func(*runner)) {
	c, ok := readRunnerCall(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	ru := s.runnerByToken(c.Token)
	if !ok || ru == nil {
		forbiddenToken(w)
		return
	}
	act(ru)
}

// byID runs act on the entry of the path if the user may change it, lock held.
func (s *Server) byID(w http.ResponseWriter, r *http.Request, u User, act func(*runner)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ru := s.findRunner(w, r, s.st)
	if ru == nil {
		return
	}
	if u.Role != RoleAdmin && u.Role != RoleOwner {
		noAccess(w)
		return
	}
	act(ru)
}
