package simgitlab

import (
	"maps"
	"net/http"
	"time"
)

// keptRequests bounds the log; the counts go on.
const keptRequests = 50_000

// Request is one call the instance got.
type Request struct {
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at"`
	Route  string    `json:"route"` // method and path template, "GET /runners/:id/jobs"
	Path   string    `json:"path"`
	Query  string    `json:"query,omitempty"`
	Status int       `json:"status"` // 0: the client went away before an answer
	// UserAgent tells callers apart where several share an instance.
	UserAgent string `json:"user_agent,omitempty"`
}

// requestLog is guarded by the Server's lock.
type requestLog struct {
	seq    int64
	kept   []Request
	counts map[string]int
}

func newRequestLog() requestLog { return requestLog{counts: map[string]int{}} }

func (l *requestLog) add(r Request) {
	l.seq++
	r.Seq = l.seq
	l.counts[r.Route]++
	l.kept = append(l.kept, r)
	if len(l.kept) > keptRequests {
		l.kept = append([]Request(nil), l.kept[keptRequests/2:]...)
	}
}

// Requests returns the logged calls with a sequence number above after.
func (s *Server) Requests(after int64) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Request{}
	for _, r := range s.log.kept {
		if r.Seq > after {
			out = append(out, r)
		}
	}
	return out
}

// Counts returns how often each route was called since the start.
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.log.counts)
}

// statusWriter remembers the status for the log.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(code int) {
	if w.status == 0 {
		w.status = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// observed logs the call and lets the faults have their say before h.
func (s *Server) observed(route string, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sw := &statusWriter{ResponseWriter: w}
		at := s.now()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.log.add(Request{
				At: at, Route: route, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery,
				Status: sw.status, UserAgent: r.UserAgent(),
			})
		}()
		if s.faulted(sw, r, route) {
			return
		}
		h(sw, r)
	}
}
