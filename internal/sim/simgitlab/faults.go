package simgitlab

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// FaultKind names one way for a call to go wrong before GitLab looks at it.
type FaultKind string

// The kinds of fault.
const (
	// FaultStatus answers Code with a GitLab-like body.
	FaultStatus FaultKind = "status"
	// FaultSlow delays by Delay, then goes on normally.
	FaultSlow FaultKind = "slow"
	// FaultHang never answers; it ends when the client goes away.
	FaultHang FaultKind = "hang"
	// FaultHTML answers 200 with a page, as a login wall or a proxy does.
	FaultHTML FaultKind = "html"
	// FaultRedirect answers Code (default 302) to Location.
	FaultRedirect FaultKind = "redirect"
	// FaultDrop closes the connection without an answer.
	FaultDrop FaultKind = "drop"
	// FaultTruncated cuts the JSON body in the middle.
	FaultTruncated FaultKind = "truncated"
)

// Fault is one injected fault. It applies to the calls that match Routes and
// ends after For (by the instance's clock), after Count calls, or when cleared.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Routes are method and path template, "PUT /jobs/:id". Empty: all.
	Routes []string `json:"routes,omitempty"`
	// FinalUpdateOnly narrows PUT /jobs/:id to those that carry a final state.
	FinalUpdateOnly bool          `json:"final_update_only,omitempty"`
	For             time.Duration `json:"for,omitempty"`   // nanoseconds in JSON
	Count           int           `json:"count,omitempty"` // calls hit; 0: no limit
	Skip            int           `json:"skip,omitempty"`  // calls let through first
	Code            int           `json:"code,omitempty"`
	Delay           time.Duration `json:"delay,omitempty"`
	RetryAfter      int           `json:"retry_after,omitempty"` // seconds; 0: no header
	Location        string        `json:"location,omitempty"`
}

type activeFault struct {
	Fault
	id    int
	until time.Time
	left  int
	skip  int
}

// Inject adds a fault and returns its number for ClearFault.
func (s *Server) Inject(f Fault) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastFault++
	a := &activeFault{Fault: f, id: s.lastFault, left: f.Count, skip: f.Skip}
	if f.For > 0 {
		a.until = s.now().Add(f.For)
	}
	s.faults = append(s.faults, a)
	return a.id
}

// ClearFault ends one fault; ClearFaults ends all.
func (s *Server) ClearFault(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.DeleteFunc(s.faults, func(f *activeFault) bool { return f.id == id })
}

// ClearFaults ends all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// hit returns the first fault that applies and uses it up.
func (s *Server) hit(route string, final func() bool) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.faults = slices.DeleteFunc(s.faults, func(f *activeFault) bool {
		return !f.until.IsZero() && !now.Before(f.until) || f.Count > 0 && f.left == 0
	})
	for _, f := range s.faults {
		if len(f.Routes) > 0 && !slices.Contains(f.Routes, route) {
			continue
		}
		if f.FinalUpdateOnly && (route != "PUT /jobs/:id" || !final()) {
			continue
		}
		if f.skip > 0 {
			f.skip--
			continue
		}
		f.left--
		return f.Fault, true
	}
	return Fault{}, false
}

// faulted applies a fault; true when it has answered the call.
func (s *Server) faulted(w http.ResponseWriter, r *http.Request, route string) bool {
	f, ok := s.hit(route, func() bool { return isFinalUpdate(r) })
	if !ok {
		return false
	}
	switch f.Kind {
	case FaultSlow:
		return !wait(r.Context(), f.Delay)
	case FaultHang:
		<-r.Context().Done()
	case FaultHTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><body>Please sign in</body></html>")
	case FaultRedirect:
		w.Header().Set("Location", f.Location)
		w.WriteHeader(orDefault(f.Code, http.StatusFound))
	case FaultDrop:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
	case FaultTruncated:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `[{"id": 1, "system_id": "s_`)
	default:
		writeFaultStatus(w, f)
	}
	return true
}

// writeFaultStatus answers with the body GitLab uses (facts/gitlab.md 1.8).
func writeFaultStatus(w http.ResponseWriter, f Fault) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	code := orDefault(f.Code, http.StatusInternalServerError)
	text := strconv.Itoa(code) + " " + http.StatusText(code)
	switch code {
	case http.StatusForbidden:
		text = "403 Forbidden - No access granted"
	case http.StatusNotFound:
		text = "404 Runner Not Found"
	case http.StatusTooManyRequests:
		writeJSON(w, code, map[string]any{"message": map[string]string{"error": "This endpoint has been requested too many times. Try again later."}})
		return
	}
	message(w, code, text)
}

// isFinalUpdate looks at a job update's body and puts it back.
func isFinalUpdate(r *http.Request) bool {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	state := stateOf(body)
	return state == StatusSuccess || state == StatusFailed
}

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}
