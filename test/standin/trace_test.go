package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A patch arrives and its answer is lost, as when a cable is pulled: GitLab refuses the
// repeat and says what it has. The result must not overtake what it has not.
func TestTheResultIsNotSentBeforeATraceWhoseLastAnswerWasLost(t *testing.T) {
	t.Parallel()
	const known = "what GitLab has, "
	text, came := known, ""
	gitlab := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPut {
			came = text
			return
		}
		w.Header().Set("Range", fmt.Sprintf("0-%d", len(text)))
		if from, _, _ := strings.Cut(r.Header.Get("Content-Range"), "-"); from != fmt.Sprint(len(text)) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		text += string(body)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(gitlab.Close)
	c := &coordinator{url: gitlab.URL, client: gitlab.Client()}
	x := newExecution(c, &job{ID: 1}, entry{Executor: "shell"}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	_, _ = io.WriteString(&x.trace, known+"and the end")
	x.deliver(t.Context(), result{State: "success"})
	if want := known + "and the end"; came != want {
		t.Errorf("the result came with the trace %q, want %q", came, want)
	}
}
