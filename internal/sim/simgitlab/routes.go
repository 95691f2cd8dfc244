package simgitlab

import (
	"net/http"
	"strings"
)

// handler serves one route; user-facing ones get the caller that was let in.
type handler func(w http.ResponseWriter, r *http.Request)

// routes builds the router. Literal segments win over parameters, as in
// GitLab's own router (facts/gitlab.md section 11, item 1).
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	api := s.cfg.BasePath + "/api/v4"
	on := func(route string, h handler) {
		method, path, _ := strings.Cut(route, " ")
		mux.HandleFunc(method+" "+api+muxPattern(path), s.observed(route, h))
	}

	// What runners call.
	on("POST /jobs/request", s.jobsRequest)
	on("PUT /jobs/:id", s.updateJob)
	on("PATCH /jobs/:id/trace", s.patchTrace)
	on("POST /runners/verify", s.verifyRunner)
	on("DELETE /runners/managers", s.deleteManager)
	on("GET /runners/router/discovery", s.routerDiscovery)

	// What users call.
	on("GET /runners/:id", s.user(scopesRead, s.getRunner))
	on("GET /runners/:id/managers", s.user(scopesRead, s.listManagers))
	on("GET /runners/:id/jobs", s.user(scopesRead, s.listRunnerJobs))
	on("GET /projects", s.user(scopesReadOnly, s.listProjects))
	on("GET /user", s.user(scopesReadOnly, s.whoami))
	on("GET /projects/:id/jobs/:job_id", s.user(scopesReadOnly, s.getJob))
	on("GET /projects/:id/jobs/:job_id/trace", s.user(scopesReadOnly, s.getTrace))
	on("GET /projects/:id/pipelines/:pipeline_id/jobs", s.user(scopesReadOnly, s.listPipelineJobs))
	on("POST /projects/:id/jobs/:job_id/cancel", s.user(scopesWrite, s.cancelJob))
	on("POST /projects/:id/jobs/:job_id/retry", s.user(scopesWrite, s.retryJob))
	on("GET /personal_access_tokens/self", s.user(nil, s.selfToken))
	on("GET /metadata", s.user(scopesReadOnly, s.metadata))
	on("GET /version", s.user(scopesReadOnly, s.metadata))

	// What must never be called: it works, and it hurts; but for the second, where
	// the entry is one VM's own and its VM is gone.
	on("DELETE /runners", s.deleteRunnerByToken)
	on("DELETE /runners/:id", s.user(scopesManage, s.deleteRunnerByID))
	on("PUT /runners/:id", s.user(scopesManage, s.updateRunner))
	on("POST /runners/reset_authentication_token", s.resetOwnToken)
	on("POST /runners/:id/reset_authentication_token", s.user(scopesManage, s.resetTokenByID))

	mux.HandleFunc("POST "+s.cfg.BasePath+"/api/graphql", s.observed("POST /api/graphql", s.user(scopesReadOnly, s.graphQL)))
	mux.HandleFunc(api+"/", s.observed("* unknown", func(w http.ResponseWriter, _ *http.Request) {
		message(w, http.StatusNotFound, "404 Not Found")
	}))
	s.controlRoutes(mux)
	mux.HandleFunc("/", s.jobPage)
	return mux
}

// muxPattern turns the documentation's ":id" into the router's "{id}".
func muxPattern(path string) string {
	segments := strings.Split(path, "/")
	for i, seg := range segments {
		if name, ok := strings.CutPrefix(seg, ":"); ok {
			segments[i] = "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}
