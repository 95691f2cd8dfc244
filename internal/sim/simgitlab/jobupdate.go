package simgitlab

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// jobUpdate is the body of PUT /jobs/:id.
type jobUpdate struct {
	Token         string `json:"token"`
	State         string `json:"state"`
	FailureReason string `json:"failure_reason"`
	ExitCode      int    `json:"exit_code"`
}

func stateOf(body []byte) string {
	var u jobUpdate
	_ = json.Unmarshal(body, &u) // a body that is not JSON has no state
	return u.State
}

// updateJob is PUT /jobs/:id: running is a keep-alive, success and failed are
// final. Every answer carries Job-Status, which is how a runner learns of a
// cancel.
func (s *Server) updateJob(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	var u jobUpdate
	if err != nil || json.Unmarshal(body, &u) != nil {
		message(w, http.StatusBadRequest, "400 Bad request")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.speakingJob(w, r, u.Token)
	if j == nil {
		return
	}
	switch u.State {
	case StatusSuccess, StatusFailed:
		s.final(j, u)
	case StatusRunning, "":
	default:
		message(w, http.StatusBadRequest, "400 Bad request: state is unknown")
		return
	}
	w.Header().Set("Job-Status", j.status)
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, "200")
}

// final applies the runner's last word. A job that was being canceled ends
// canceled whatever the runner says.
func (s *Server) final(j *job, u jobUpdate) {
	if j.status == StatusCanceling {
		s.finish(j, StatusCanceled, "")
		return
	}
	reason := u.FailureReason
	if reason == "" {
		reason = "unknown_failure"
	}
	s.finish(j, u.State, reason)
}

// patchTrace is PATCH /jobs/:id/trace with a Content-Range of bytes.
func (s *Server) patchTrace(w http.ResponseWriter, r *http.Request) {
	chunk, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		message(w, http.StatusBadRequest, "400 Bad request")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.speakingJob(w, r, "")
	if j == nil {
		return
	}
	first, _, _ := strings.Cut(r.Header.Get("Content-Range"), "-")
	start, err := strconv.Atoi(first)
	if err != nil {
		message(w, http.StatusBadRequest, "400 Missing header Content-Range")
		return
	}
	w.Header().Set("Job-Status", j.status)
	w.Header().Set("X-GitLab-Trace-Update-Interval", "3")
	if start != len(j.trace) {
		w.Header().Set("Range", fmt.Sprintf("0-%d", len(j.trace)))
		message(w, http.StatusRequestedRangeNotSatisfiable, "416 Range Not Satisfiable")
		return
	}
	j.trace = append(j.trace, chunk...)
	w.Header().Set("Range", fmt.Sprintf("0-%d", len(j.trace)))
	w.WriteHeader(http.StatusAccepted)
}

// speakingJob authenticates a runner's call about a job, notes the contact and
// completes a two-phase assignment. Nil: the answer is written. Lock held.
func (s *Server) speakingJob(w http.ResponseWriter, r *http.Request, token string) *job {
	if h := r.Header.Get("Job-Token"); h != "" {
		token = h
	}
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	j := s.st.jobs[id]
	if j == nil || token != j.token || j.runnerID == 0 {
		forbiddenToken(w)
		return nil
	}
	if j.finished() {
		w.Header().Set("Job-Status", j.status)
		message(w, http.StatusForbidden, "403 Forbidden - Job is not processing on runner")
		return nil
	}
	j.heard, j.touchedAt = true, s.now()
	m := s.st.managerBySystemID(j.runnerID, j.systemID)
	if m != nil {
		m.contactedAt = s.now()
	}
	if j.status == StatusPending {
		s.beforeChange()
		j.status, j.startedAt = StatusRunning, s.now()
		if m != nil {
			j.managerID = m.id
		}
	}
	return j
}
