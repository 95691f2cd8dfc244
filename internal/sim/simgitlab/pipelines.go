package simgitlab

import (
	"net/http"
	"slices"
	"strconv"
)

// latestJobs are a pipeline's, newest first, without those that were retried.
func (s *state) latestJobs(pipeline int64) []*job {
	return s.jobsOf(func(j *job) bool { return j.spec.Pipeline == pipeline && !j.retried })
}

// pipelineStatus is running as long as a job of it is or waits; else the worst.
func (s *state) pipelineStatus(pipeline int64) string {
	status := StatusSuccess
	for _, j := range s.latestJobs(pipeline) {
		switch {
		case !j.finished():
			return StatusRunning
		case j.status == StatusFailed, j.status == StatusCanceled && status != StatusFailed:
			status = j.status
		}
	}
	return status
}

// listPipelineJobs is GET /projects/:id/pipelines/:pipeline_id/jobs without
// include_retried (lib/api/ci/pipelines.rb).
func (s *Server) listPipelineJobs(w http.ResponseWriter, r *http.Request, u User) {
	id, _ := strconv.ParseInt(r.PathValue("pipeline_id"), 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.reading()
	list := slices.DeleteFunc(st.latestJobs(id), func(j *job) bool {
		return !u.sees(j.spec.Project) || strconv.FormatInt(j.projectID, 10) != r.PathValue("id")
	})
	page := []jobFull{}
	for _, j := range s.paginate(w, r, list, true) {
		page = append(page, s.jobFull(st, s.baseURL(r), j))
	}
	writeJSON(w, http.StatusOK, page)
}
