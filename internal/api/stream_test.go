package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tmaxmax/go-sse"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// open begins a stream of the journal.
func (w *world) open(t *testing.T, accept, query string, header ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/api/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", accept)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func (w *world) write(t *testing.T, operation string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := w.store.AppendFacts(t.Context(), []fleet.Fact{{At: time.Now(), Operation: operation, Fleet: "gcp", Kind: fleet.FactNote, Text: text}}); err != nil {
			t.Fatal(err)
		}
	}
}

// sseEvents reads n events with a reader that we did not write.
func sseEvents(t *testing.T, response *http.Response, n int) (list []client.Event) {
	t.Helper()
	for e, err := range sse.Read(response.Body, nil) {
		if err != nil {
			t.Fatal(err)
		}
		var event client.Event
		if err := json.Unmarshal([]byte(e.Data), &event); err != nil || fmt.Sprint(event.Id) != e.LastEventID {
			t.Fatalf("id %s with %s: %v", e.LastEventID, e.Data, err)
		}
		if list = append(list, event); len(list) == n {
			return list
		}
	}
	t.Fatalf("the stream ended after %d events", len(list))
	return nil
}

// lineEvents reads n events of a stream of JSON lines.
func lineEvents(t *testing.T, response *http.Response, n int) (list []client.Event) {
	t.Helper()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var event client.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		if list = append(list, event); len(list) == n {
			return list
		}
	}
	t.Fatalf("the stream ended after %d events", len(list))
	return nil
}

func said(events []client.Event) (list []string) {
	for i := range events {
		list = append(list, events[i].Text)
	}
	return list
}

func TestBothStreamsTellWhatIsThereAndWhatIsWritten(t *testing.T) {
	w := setup(t)
	op := w.ask(t, "a").Operations[0]
	for accept, read := range map[string]func(*testing.T, *http.Response, int) []client.Event{
		"text/event-stream": sseEvents, "application/x-ndjson": lineEvents,
	} {
		response := w.open(t, accept, "?operation="+op.Id)
		if kind := response.Header.Get("Content-Type"); kind != accept || response.StatusCode != http.StatusOK || response.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %s", accept, response.StatusCode, kind)
		}
		w.write(t, op.Id, "one", "two\nlines")
		w.write(t, "op-other", "of another")
		w.write(t, op.Id, "three")
		list, err := w.Events(t.Context(), client.ListEventsParams{Operation: &[]string{op.Id}})
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, response, len(list.Events))
		if fmt.Sprint(said(got)) != fmt.Sprint(said(list.Events)) || got[len(got)-1].Text != "three" {
			t.Errorf("%s: streamed %q, listed %q", accept, said(got), said(list.Events))
		}
	}
}

func TestAStreamIsResumedAfterTheLaterOfBothIds(t *testing.T) {
	w := setup(t)
	w.write(t, "", "one", "two", "three", "four")
	for _, c := range []struct {
		query, last string
		want        []string
	}{
		{"?after=2", "", []string{"three", "four"}},
		{"?after=2", "3", []string{"four"}},
		{"?after=2", "1", []string{"three", "four"}},
		{"", "3", []string{"four"}},
	} {
		var header []string
		if c.last != "" {
			header = []string{"Last-Event-ID", c.last}
		}
		got := sseEvents(t, w.open(t, "text/event-stream", c.query, header...), len(c.want))
		if !slices.Equal(said(got), c.want) {
			t.Errorf("%+v: got %q", c, said(got))
		}
	}
}

func TestSeveralOperationsAreFollowedInOneStreamAndInOnePiece(t *testing.T) {
	w := setup(t)
	ops := w.ask(t, "a", "b").Operations
	query := "?operation=" + ops[0].Id + "&operation=" + ops[1].Id + "&operation=" + ops[1].Id
	response := w.open(t, "text/event-stream", query+"&after=2")
	w.write(t, ops[1].Id, "first")
	w.write(t, "op-other", "of another")
	w.write(t, ops[0].Id, "second")
	if got := said(sseEvents(t, response, 2)); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("streamed %q", got)
	}
	piece, err := w.Events(t.Context(), client.ListEventsParams{After: new(int64(2)), Limit: new(int64(1)), Operation: &[]string{ops[0].Id, ops[1].Id}})
	if err != nil || len(piece.Events) != 1 || piece.Events[0].Text != "first" || piece.Next != piece.Events[0].Id {
		t.Errorf("listed %+v, %v", piece, err)
	}
}

func TestAStreamThatCannotBeIsAProblem(t *testing.T) {
	w := setup(t)
	w.write(t, "", "one")
	for _, c := range []struct {
		query, last, auth, want string
		status                  int
	}{
		{"?operation=op-nothing", "", token, "there is no operation op-nothing", http.StatusNotFound},
		{"?after=7", "", token, "the journal ends at event 1, before event 7", http.StatusConflict},
		{"?after=soon", "", token, "query.after", http.StatusUnprocessableEntity},
		{"", "soon", token, "header.Last-Event-ID", http.StatusUnprocessableEntity},
		{"?after=-1", "", token, "query.after", http.StatusUnprocessableEntity},
		{"?" + strings.Repeat("operation=x&", 201), "", token, "query.operation", http.StatusUnprocessableEntity},
		{"", "", "nonsense", "not known", http.StatusUnauthorized},
	} {
		for _, accept := range []string{"text/event-stream", "application/x-ndjson"} {
			response := w.open(t, accept, c.query, "Last-Event-ID", c.last, "Authorization", "Bearer "+c.auth)
			body, _ := io.ReadAll(response.Body)
			if kind := response.Header.Get("Content-Type"); response.StatusCode != c.status || kind != "application/problem+json" || !strings.Contains(string(body), c.want) {
				t.Errorf("%s %.60s: %d %s %s", accept, c.query, response.StatusCode, kind, body)
			}
		}
	}
}

func TestOnlyWhoAsksForAStreamGetsOne(t *testing.T) {
	w := setup(t)
	w.write(t, "", "one")
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/json": "application/json", "text/html, */*;q=0.1": "application/json",
		"application/json, text/event-stream;q=0.5": "application/json", "text/event-stream;q=0": "application/json", "text/event-stream;q=x": "application/json",
		"text/event-stream": "text/event-stream", "Text/Event-Stream; charset=utf-8": "text/event-stream",
		"application/json;q=0.5, application/x-ndjson;q=0.8": "application/x-ndjson", "application/jsonl, */*;q=0.5": "application/x-ndjson",
		";;;, text/event-stream, application/json": "text/event-stream",
	} {
		response := w.open(t, accept, "")
		kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
		if response.StatusCode != http.StatusOK || kind != want {
			t.Errorf("%q: %d %s, want %s", accept, response.StatusCode, kind, want)
		}
	}
}
