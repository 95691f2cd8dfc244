package simgitlab

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

const (
	defaultPerPage = 20
	maxPerPage     = 100
)

// paginate cuts one page out of jobs (newest first) and sets the headers.
// counted false: no totals, as GitLab does with a system_id. Lock held.
func (s *Server) paginate(w http.ResponseWriter, r *http.Request, jobs []*job, counted bool) []*job {
	q := r.URL.Query()
	perPage := min(atoi(q.Get("per_page"), defaultPerPage), maxPerPage)
	if s.switches.MaxPerPage > 0 {
		perPage = min(perPage, s.switches.MaxPerPage)
	}
	if q.Get("sort") == "asc" && q.Get("order_by") != "" {
		jobs = slices.Clone(jobs)
		slices.Reverse(jobs)
	}
	if q.Get("pagination") == "keyset" {
		return s.keysetPage(w, r, jobs, perPage)
	}
	page := atoi(q.Get("page"), 1)
	start := min((page-1)*perPage, len(jobs))
	end := min(start+perPage, len(jobs))
	h := w.Header()
	h.Set("X-Page", strconv.Itoa(page))
	h.Set("X-Per-Page", strconv.Itoa(perPage))
	h.Set("X-Prev-Page", "")
	if page > 1 {
		h.Set("X-Prev-Page", strconv.Itoa(page-1))
	}
	h.Set("X-Next-Page", "")
	if counted {
		h.Set("X-Total", strconv.Itoa(len(jobs)))
		h.Set("X-Total-Pages", strconv.Itoa((len(jobs)+perPage-1)/perPage))
	}
	if end < len(jobs) && !s.switches.CutPages {
		h.Set("X-Next-Page", strconv.Itoa(page+1))
		s.linkNext(w, r, "page", strconv.Itoa(page+1))
	}
	return jobs[start:end]
}

// keysetPage continues after the id in the cursor; only the Link leads on.
func (s *Server) keysetPage(w http.ResponseWriter, r *http.Request, jobs []*job, perPage int) []*job {
	start := 0
	if after, err := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64); err == nil {
		start = 1 + slices.IndexFunc(jobs, func(j *job) bool { return j.id == after })
	}
	end := min(start+perPage, len(jobs))
	if end < len(jobs) && !s.switches.CutPages {
		s.linkNext(w, r, "cursor", strconv.FormatInt(jobs[end-1].id, 10))
	}
	return jobs[start:end]
}

func (s *Server) linkNext(w http.ResponseWriter, r *http.Request, key, value string) {
	q := r.URL.Query()
	q.Set(key, value)
	u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: q.Encode()}
	w.Header().Set("Link", "<"+u.String()+`>; rel="next"`)
}

func atoi(text string, def int) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return def
}
