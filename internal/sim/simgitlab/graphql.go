package simgitlab

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var gidPattern = regexp.MustCompile(`gid://gitlab/Ci::Runner/(\d+)`)

// graphQL answers one query, runner(id), with a fixed set of its fields. Its
// errors come with status 200, as GitLab's do. It knows no mutation.
func (s *Server) graphQL(w http.ResponseWriter, r *http.Request, u User) {
	var body struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables"`
	}
	if err := readJSON(r, &body); err != nil || !strings.Contains(body.Query, "runner(") {
		graphQLError(w, "only the query runner(id) is known here")
		return
	}
	id, _ := body.Variables["id"].(string)
	found := gidPattern.FindStringSubmatch(id + " " + body.Query)
	if found == nil {
		graphQLError(w, "runner id is missing")
		return
	}
	n, _ := strconv.ParseInt(found[1], 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	ru := s.reading().runners[n]
	if ru == nil || ru.deleted || u.Role == RoleNone {
		writeJSON(w, http.StatusOK, map[string]any{"data": map[string]any{"runner": nil}})
		return
	}
	var expires any
	if u.Role != RoleMaintainer { // sensitive data: owners and admins only
		expires = timeOrNil(ru.spec.TokenExpiresAt)
	}
	writeJSON(w, http.StatusOK, map[string]any{"data": map[string]any{"runner": map[string]any{
		"id": found[0], "runnerType": strings.ToUpper(ru.spec.Type), "paused": ru.paused,
		"description": ru.spec.Description, "tokenExpiresAt": expires,
	}}})
}

func graphQLError(w http.ResponseWriter, text string) {
	writeJSON(w, http.StatusOK, map[string]any{"errors": []map[string]string{{"message": text}}})
}
