package simgitlab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Server is the instance. It is an http.Handler and safe for concurrent use.
type Server struct {
	cfg Config
	mux *http.ServeMux

	mu          sync.Mutex
	st          *state
	stale       *state // what the next staleLeft reads still see
	staleLeft   int
	switches    Switches
	faults      []*activeFault
	lastFault   int
	log         requestLog
	damage      []TokenDamage
	removed     []int64              // individual entries that were removed after their VM
	gone        map[string]time.Time // system_id → when its VM went away
	graceful    map[int64]bool       // manager id → said it can cancel gracefully
	nextID      int64
	queueSerial int64
	queueWake   chan struct{} // closed and replaced when the queue changes
}

// New returns a Server with the entries of cfg. It panics without a clock,
// which is a mistake of the caller.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		panic("simgitlab: Config.Now is required")
	}
	cfg = cfg.withDefaults()
	s := &Server{
		cfg:         cfg,
		st:          newState(),
		log:         newRequestLog(),
		gone:        map[string]time.Time{},
		graceful:    map[int64]bool{},
		nextID:      1000,
		queueSerial: 1,
		queueWake:   make(chan struct{}),
	}
	for _, r := range cfg.Runners {
		if r.Type == "" {
			r.Type = "group_type"
		}
		s.st.runners[r.ID] = &runner{spec: r, createdAt: cfg.Now()}
		for _, path := range r.Projects {
			s.project(path)
		}
	}
	s.mux = s.routes()
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	s.mux.ServeHTTP(w, r)
}

func (s *Server) now() time.Time { return s.cfg.Now() }

// id returns a new identifier; the caller holds the lock.
func (s *Server) id() int64 {
	s.nextID++
	return s.nextID
}

// beforeChange is called, with the lock held, before a job's status changes:
// it is where a stale read's picture is taken.
func (s *Server) beforeChange() {
	if s.switches.StaleReads > 0 && s.stale == nil {
		s.stale, s.staleLeft = s.st.clone(), s.switches.StaleReads
	}
}

// reading returns the state that a user-facing read sees. The lock is held.
func (s *Server) reading() *state {
	s.sweepStuck()
	if s.stale == nil {
		return s.st
	}
	old := s.stale
	s.staleLeft--
	if s.staleLeft <= 0 {
		s.stale = nil
	}
	return old
}

// sweepStuck does what GitLab's cron does: it fails jobs that nobody has
// touched for an hour. The lock is held.
func (s *Server) sweepStuck() {
	now := s.now()
	for _, j := range s.st.jobs {
		if j.executing() && now.Sub(j.touchedAt) >= stuckAfter {
			s.finish(j, StatusFailed, "stuck_or_timeout_failure")
		}
	}
}

// finish ends a job. The lock is held.
func (s *Server) finish(j *job, status, reason string) {
	s.beforeChange()
	j.status, j.finishedAt, j.touchedAt = status, s.now(), s.now()
	j.failureReason = ""
	if status == StatusFailed {
		j.failureReason = reason
	}
}

// wakeQueue lets every held request look again. The lock is held.
func (s *Server) wakeQueue() {
	s.queueSerial++
	close(s.queueWake)
	s.queueWake = make(chan struct{})
}

func (s *Server) lastUpdate() string { return fmt.Sprintf("sim-%d", s.queueSerial) }

// baseURL is the instance's URL as this request's client sees it.
func (s *Server) baseURL(r *http.Request) string {
	return "http://" + r.Host + s.cfg.BasePath
}

// wait blocks for d or until the client is gone; it says whether d passed.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone: nothing to do
}

// message writes GitLab's usual error body.
func message(w http.ResponseWriter, code int, text string) {
	writeJSON(w, code, map[string]string{"message": text})
}

func notFound(w http.ResponseWriter, what string) {
	message(w, http.StatusNotFound, "404 "+strings.TrimSpace(what+" Not Found"))
}
