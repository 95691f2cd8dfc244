package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"gitlab.com/sluice-runners/sluice/internal/events"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const (
	heartbeatEvery = 15 * time.Second
	// slowLimit is how long a follower may take nothing of what is written to
	// him before he is dropped. He resumes after the last event that he has.
	slowLimit = 10 * time.Second
	chunkSize = 32 << 10 // bytes
	// streamLimit is how long a stream lasts: then the follower comes again,
	// and whether he may is asked anew.
	streamLimit = time.Hour
)

const streamsDescription = "With `Accept: text/event-stream` the answer is a stream of server-sent events (WHATWG HTML): `id` is the event's id, " +
	"`data` its JSON. With `Accept: application/x-ndjson` it is a stream of JSON lines, an event each. " +
	"Both begin with everything after `after` and go on with what is written. They begin with a heartbeat and send one after every 15 s without an event: " +
	"a comment, or an empty line. A stream ends after an hour, when the server ends, or when nothing of it was taken for 10 s; " +
	"resume it with `Last-Event-ID` or `after`: nothing is lost, nothing comes twice. One caller has at most 64 streams and waits at once (429); " +
	"a `wait` for which there is no place is answered within a second, with what there is then. Any other `Accept` is answered with JSON."

func (s *Server) eventsResponses() map[string]*huma.Response {
	registry := s.api.OpenAPI().Components.Schemas
	return map[string]*huma.Response{"200": {
		Description: "A piece of the journal, or a stream of it",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: registry.Schema(reflect.TypeFor[Events](), true, "Events")},
			typeNDJSON:         {Schema: registry.Schema(reflect.TypeFor[Event](), true, "Event")},
			typeSSE:            {Schema: &huma.Schema{Type: huma.TypeString, Description: "Server-sent events; the data of each is an Event."}},
		},
	}}
}

// eventLine is an event as it goes out in a stream.
func eventLine(f fleet.Fact) ([]byte, error) { return json.Marshal(eventView(f)) }

// startStream begins a stream; what can be refused is refused here.
func (s *Server) startStream(c *call, in *eventsInput, operations []string) (*eventsOutput, error) {
	follower, err := s.tail.Follow(c, c.key, in.After, operations)
	if err != nil {
		return nil, ending(err)
	}
	return &eventsOutput{Body: func(ctx huma.Context) {
		defer follower.Close()
		err := s.stream(ctx, in.form, follower)
		if err != nil && c.Err() == nil && !errors.Is(err, events.ErrEnded) {
			s.Log.InfoContext(c, "a follower of the events was dropped; he may resume", "by", c.by.Name, "from", c.by.From, "error", err)
		}
	}}, nil
}

// stream writes until the follower goes, is too slow, or has to ask anew.
func (s *Server) stream(ctx huma.Context, form form, follower *events.Follower) error {
	out := &streamWriter{form: form, now: s.Clock.Now, to: ctx.BodyWriter().(http.ResponseWriter)} //nolint:forcetypeassert // echo's
	out.control = http.NewResponseController(out.to)
	out.begin(ctx)
	end := s.Clock.Now().Add(streamLimit)
	for err := out.hello(); ; err = out.heartbeat() {
		if err != nil {
			return err
		}
		for {
			entries, err := follower.Next(ctx.Context(), heartbeatEvery)
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				break
			}
			if err := out.write(entries); err != nil {
				return err
			}
			if s.Clock.Now().After(end) {
				return nil
			}
		}
		if s.Clock.Now().After(end) {
			return nil
		}
	}
}

// streamWriter writes events in one form.
type streamWriter struct {
	form    form
	now     func() time.Time
	to      http.ResponseWriter
	control *http.ResponseController
	buffer  []byte
}

func (w *streamWriter) begin(ctx huma.Context) {
	kind := typeSSE
	if w.form == asNDJSON {
		kind = typeNDJSON
	}
	ctx.SetHeader("Content-Type", kind)
	ctx.SetHeader("Cache-Control", "no-store")
	ctx.SetHeader("X-Accel-Buffering", "no") // nginx: hand on what comes
	ctx.SetStatus(http.StatusOK)
}

// hello is the first heartbeat; browsers are told to come again after 1 s.
func (w *streamWriter) hello() error {
	if w.form == asSSE {
		return w.send([]byte("retry: 1000\n: events follow\n\n"))
	}
	return w.heartbeat()
}

func (w *streamWriter) heartbeat() error {
	if w.form == asSSE {
		return w.send([]byte(":\n\n"))
	}
	return w.send([]byte("\n"))
}

func (w *streamWriter) write(entries []events.Entry) error {
	w.buffer = w.buffer[:0]
	for _, e := range entries {
		if w.form == asSSE {
			w.buffer = fmt.Appendf(w.buffer, "id: %d\ndata: %s\n\n", e.ID, e.JSON)
		} else {
			w.buffer = append(append(w.buffer, e.JSON...), '\n')
		}
	}
	return w.send(w.buffer)
}

// send writes and flushes, a chunk at a time within slowLimit.
func (w *streamWriter) send(p []byte) error {
	for chunk := range slices.Chunk(p, chunkSize) {
		if err := w.control.SetWriteDeadline(w.now().Add(slowLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if _, err := w.to.Write(chunk); err != nil {
			return err
		}
		if err := w.control.Flush(); err != nil {
			return err
		}
	}
	return nil
}
