package simgitlab

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
)

// maxBody bounds what a call may send.
const maxBody = 1 << 20

// legacySystemID is the manager's name when a call bears no system_id.
const legacySystemID = "<legacy>"

// runnerInfo is what a runner says about itself.
type runnerInfo struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Revision     string          `json:"revision"`
	Platform     string          `json:"platform"`
	Architecture string          `json:"architecture"`
	Features     map[string]bool `json:"-"`
}

// runnerCall is the body of the runner-facing calls that carry the runner's token.
type runnerCall struct {
	Token      string     `json:"token"`
	SystemID   string     `json:"system_id"`
	LastUpdate string     `json:"last_update"`
	Info       runnerInfo `json:"info"`
}

// readRunnerCall decodes a JSON body; a query or form is accepted too, as
// GitLab does (and as no client of ours should do).
func readRunnerCall(r *http.Request) (runnerCall, bool) {
	var c runnerCall
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return c, false
	}
	if len(body) > 0 && json.Unmarshal(body, &c) != nil {
		return c, false
	}
	var f struct {
		Info struct {
			Features map[string]any `json:"features"`
		} `json:"info"`
	}
	_ = json.Unmarshal(body, &f) // features are optional and of mixed kinds
	c.Info.Features = map[string]bool{}
	for name, v := range f.Info.Features {
		if on, ok := v.(bool); ok {
			c.Info.Features[name] = on
		}
	}
	q := r.URL.Query()
	if c.Token == "" {
		c.Token = q.Get("token")
	}
	if c.SystemID == "" {
		c.SystemID = q.Get("system_id")
	}
	return c, true
}

// runnerByToken returns the living entry with that token. The lock is held.
func (s *Server) runnerByToken(token string) *runner {
	for _, r := range s.st.runners {
		if token != "" && r.spec.Token == token && !r.deleted {
			return r
		}
	}
	return nil
}

// heartbeat finds or makes the manager and notes the contact. The lock is held.
func (s *Server) heartbeat(ru *runner, c runnerCall, r *http.Request) *manager {
	if c.SystemID == "" {
		c.SystemID = legacySystemID
	}
	m := s.st.managerBySystemID(ru.spec.ID, c.SystemID)
	if m == nil {
		m = &manager{id: s.id(), runnerID: ru.spec.ID, systemID: c.SystemID, createdAt: s.now()}
		s.st.managers[m.id] = m
	}
	if c.Info.Version != "" || c.Info.Name != "" {
		m.info = c.Info
	}
	if len(c.Info.Features) > 0 {
		s.graceful[m.id] = c.Info.Features["cancel_gracefully"]
	}
	m.ip, _, _ = net.SplitHostPort(r.RemoteAddr)
	m.contactedAt, ru.contactedAt = s.now(), s.now()
	return m
}

func forbiddenToken(w http.ResponseWriter) {
	message(w, http.StatusForbidden, "403 Forbidden")
}
