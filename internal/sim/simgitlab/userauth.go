package simgitlab

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Scopes that let a call in (facts/gitlab.md 1.3).
var (
	scopesReadOnly = []string{"read_api", "api"}
	scopesRead     = []string{"read_api", "api", "manage_runner"}
	scopesWrite    = []string{"api"}
	scopesManage   = []string{"api", "manage_runner"}
)

type userHandler func(w http.ResponseWriter, r *http.Request, u User)

// user lets in who has a known token with one of scopes (nil: any).
func (s *Server) user(scopes []string, h userHandler) handler {
	return func(w http.ResponseWriter, r *http.Request) {
		u, ok := s.caller(r)
		if !ok {
			message(w, http.StatusUnauthorized, "401 Unauthorized")
			return
		}
		if scopes != nil && !slices.ContainsFunc(u.Scopes, func(sc string) bool { return slices.Contains(scopes, sc) }) {
			writeJSON(w, http.StatusForbidden, map[string]string{
				"error":             "insufficient_scope",
				"error_description": "The request requires higher privileges than provided by the access token.",
				"scope":             strings.Join(scopes, " "),
			})
			return
		}
		h(w, r, u)
	}
}

func (s *Server) caller(r *http.Request) (User, bool) {
	token := r.Header.Get("Private-Token")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && token == "" {
		token = bearer
	}
	now := s.now()
	for _, u := range s.cfg.Users {
		if token != "" && u.Token == token && (u.ExpiresAt.IsZero() || now.Before(u.ExpiresAt)) {
			return u, true
		}
	}
	return User{}, false
}

func (u User) sees(path string) bool {
	return u.Role == RoleAdmin || u.Projects == nil || slices.Contains(u.Projects, path)
}

// develops says whether the user may cancel and retry the project's jobs.
func (u User) develops(path string) bool {
	return u.sees(path) && u.Role != RoleNone && !slices.Contains(u.Reports, path)
}

// maintains says whether the user may force a cancel.
func (u User) maintains() bool { return u.Role != RoleDeveloper && u.Role != RoleNone }

func noAccess(w http.ResponseWriter) {
	message(w, http.StatusForbidden, "403 Forbidden - No access granted")
}

// findRunner returns the entry of the path; nil: 404 is written. Lock held.
func (s *Server) findRunner(w http.ResponseWriter, r *http.Request, st *state) *runner {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	ru := st.runners[id]
	if err != nil || ru == nil || ru.deleted {
		notFound(w, "Runner")
		return nil
	}
	return ru
}

func readJSON(r *http.Request, v any) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}
