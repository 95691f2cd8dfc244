package hooks

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// The results that deliveries are counted under.
const (
	resultAccepted     = "accepted"     // a trigger matched
	resultHint         = "hint"         // a job ended: drains were told to look
	resultIgnored      = "ignored"      // no trigger matched
	resultRepeated     = "repeated"     // it had come before
	resultUnreadable   = "unreadable"   // authenticated, but no event that can be read
	resultUnauthorized = "unauthorized" // no, or no good, signature or token
	resultStale        = "stale"        // signed too long ago, or ahead of our clock
	resultTooLarge     = "too_large"
	resultIncomplete   = "incomplete" // the body did not come whole
	resultBusy         = "busy"       // too many large ones at once
	resultFailed       = "failed"     // it could not be stored
)

// Results lists them, so that every series can start at 0.
func Results() []string {
	return []string{
		resultAccepted, resultHint, resultIgnored, resultRepeated, resultUnreadable, resultUnauthorized, resultStale,
		resultTooLarge, resultIncomplete, resultBusy, resultFailed,
	}
}

// refusal is why a delivery was not taken: a result, a sentence and what to do.
type refusal struct {
	result, detail, hint string
}

// Error implements error.
func (r *refusal) Error() string { return r.detail }

func refuse(result, detail, hint string) *refusal {
	return &refusal{result: result, detail: detail, hint: hint}
}

// status is the one place where results become HTTP statuses. GitLab takes 4xx
// for a hook that is set up wrongly, and after four of them in a row stops
// sending for a while (facts/gitlab.md section 5.2): only who is not let in, and
// what is not stored, gets one.
func (r *refusal) status() int {
	switch r.result {
	case resultUnauthorized, resultStale:
		return http.StatusUnauthorized
	case resultTooLarge:
		return http.StatusRequestEntityTooLarge
	case resultIncomplete:
		return http.StatusBadRequest
	default:
		return http.StatusServiceUnavailable
	}
}

func (r *refusal) code() string {
	switch r.status() {
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusServiceUnavailable:
		return "unavailable"
	default:
		return "invalid"
	}
}

// problem is an error as a document (RFC 9457), in the form of package api.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Hint   string `json:"hint,omitempty"`
}

func writeProblem(w http.ResponseWriter, p problem) {
	p.Title = http.StatusText(p.Status)
	respond(w, p.Status, "application/problem+json", p)
}

func respond(w http.ResponseWriter, status int, kind string, body any) {
	text, err := json.Marshal(body)
	if err != nil { // it is made of texts and numbers
		status, text = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text))) // it is whole when it is flushed
	w.WriteHeader(status)
	_, _ = w.Write(text) // the caller is gone
}
