package simgitlab

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// getJob is GET /projects/:id/jobs/:job_id.
func (s *Server) getJob(w http.ResponseWriter, r *http.Request, u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.reading()
	if j := s.findJob(w, r, st, u); j != nil {
		writeJSON(w, http.StatusOK, s.jobFull(st, s.baseURL(r), j))
	}
}

// getTrace is GET /projects/:id/jobs/:job_id/trace: plain text, empty if the
// runner never wrote.
func (s *Server) getTrace(w http.ResponseWriter, r *http.Request, u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.findJob(w, r, s.reading(), u); j != nil {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(j.trace) //nolint:gosec // plain text of our own tests
	}
}

// findJob resolves project (id or path) and job; nil: 404 is written.
func (s *Server) findJob(w http.ResponseWriter, r *http.Request, st *state, u User) *job {
	id, _ := strconv.ParseInt(r.PathValue("job_id"), 10, 64)
	j := st.jobs[id]
	if j == nil || !u.sees(j.spec.Project) {
		notFound(w, "")
		return nil
	}
	ref, err := url.PathUnescape(r.PathValue("id"))
	if err != nil || ref != strconv.FormatInt(j.projectID, 10) && ref != j.spec.Project {
		notFound(w, "Project")
		return nil
	}
	return j
}

// cancelJob is POST …/cancel: canceling if the runner can cancel gracefully,
// else canceled at once; a finished job is answered 201 and left as it is. With
// force, which a Maintainer may, one that is canceling becomes canceled, and
// any other stays as it is (lib/api/ci/jobs.rb).
func (s *Server) cancelJob(w http.ResponseWriter, r *http.Request, u User) {
	var body struct {
		Force bool `json:"force"`
	}
	_ = readJSON(r, &body) // force is optional
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.findJob(w, r, s.st, u)
	if j == nil {
		return
	}
	if !u.develops(j.spec.Project) || body.Force && !u.maintains() {
		message(w, http.StatusForbidden, "403 Forbidden")
		return
	}
	s.cancel(j, u, body.Force)
	writeJSON(w, http.StatusCreated, s.jobFull(s.st, s.baseURL(r), j))
}

// cancel applies a cancel. The lock is held.
func (s *Server) cancel(j *job, u User, force bool) {
	switch {
	case j.finished():
	case force && j.status == StatusCanceling:
		s.finish(j, StatusCanceled, "")
	case force || j.status == StatusCanceling:
	case j.status == StatusRunning && s.graceful[j.managerID]:
		s.beforeChange()
		j.status, j.canceledBy, j.touchedAt = StatusCanceling, u.Name, s.now()
	default:
		j.canceledBy = u.Name
		s.finish(j, StatusCanceled, "")
	}
}

// retryJob is POST …/retry: 201 with the new job; 403 unless the old one is
// finished or canceling and was not retried yet (app/models/ci/processable.rb).
func (s *Server) retryJob(w http.ResponseWriter, r *http.Request, u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.findJob(w, r, s.st, u)
	if j == nil {
		return
	}
	if !u.develops(j.spec.Project) {
		message(w, http.StatusForbidden, "403 Forbidden")
		return
	}
	if !j.finished() && j.status != StatusCanceling || j.retried {
		message(w, http.StatusForbidden, "403 Forbidden - Job is not retryable")
		return
	}
	j.retried = true
	id := s.enqueue(j.spec, j.id)
	writeJSON(w, http.StatusCreated, s.jobFull(s.st, s.baseURL(r), s.st.jobs[id]))
}

// selfToken is GET /personal_access_tokens/self.
func (s *Server) selfToken(w http.ResponseWriter, _ *http.Request, u User) {
	var expires any
	if !u.ExpiresAt.IsZero() {
		expires = u.ExpiresAt.Format("2006-01-02")
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"id": 1, "name": u.Name, "revoked": false, "active": true, "scopes": u.Scopes,
		"user_id": 1, "created_at": s.now().UTC(), "last_used_at": s.now().UTC(), "expires_at": expires,
	})
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request, _ User) {
	writeJSON(w, http.StatusOK, map[string]any{
		"version": s.cfg.Version, "revision": "0123456789a", "enterprise": true,
		"kas": map[string]any{"enabled": false, "externalUrl": nil, "version": nil},
	})
}

// jobPage serves a job's web_url, so that the links people see lead somewhere.
func (s *Server) jobPage(w http.ResponseWriter, r *http.Request) {
	_, num, ok := strings.Cut(r.URL.Path, "/-/jobs/")
	id, err := strconv.ParseInt(num, 10, 64)
	s.mu.Lock()
	j := s.st.jobs[id]
	s.mu.Unlock()
	if !ok || err != nil || j == nil {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, "job %d: %s\n\n%s", j.id, j.status, j.trace)
}
