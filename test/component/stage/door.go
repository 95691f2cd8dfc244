package stage

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Door is the controller's listener on loopback, and what can be wrong with
// the way to it.
type Door struct {
	URL string

	mu      sync.Mutex
	inner   http.Handler
	shut    bool
	streams map[*http.Request]context.CancelFunc // answers about events that have not ended
	instead http.HandlerFunc                     // answers for the controller; nil: it answers itself
	calls   map[string]int                       // by method and first word after the API's path
	keys    map[string]struct{}                  // Idempotency-Keys seen
}

func newDoor(t *testing.T, inner http.Handler) *Door {
	t.Helper()
	d := &Door{inner: inner, calls: map[string]int{}, streams: map[*http.Request]context.CancelFunc{}, keys: map[string]struct{}{}}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	d.URL = server.URL
	return d
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.calls[r.Method+" "+last(r.URL.Path)]++
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		d.keys[key] = struct{}{}
	}
	inner, instead, broken := d.inner, d.instead, d.shut
	if strings.HasSuffix(r.URL.Path, "/events") {
		ctx, cancel := context.WithCancel(r.Context())
		d.streams[r] = cancel
		defer d.ended(r) // as it is now
		r = r.WithContext(ctx)
	}
	d.mu.Unlock()
	switch {
	case broken:
		panic(http.ErrAbortHandler) // the connection ends without an answer
	case instead != nil:
		instead(w, r)
	default:
		inner.ServeHTTP(w, r)
	}
}

// last is "events", "operations" or the like: an operation's id is left out.
func last(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 3 && parts[2] == "operations" {
		return parts[2] + "/ID"
	}
	return parts[len(parts)-1]
}

// Shut ends every connection without an answer, until it is opened again.
func (d *Door) Shut(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
}

// Cut ends every answer about events that has not ended, as something in
// between with a limit does, and says how many there were.
func (d *Door) Cut() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, cancel := range d.streams {
		cancel()
	}
	return len(d.streams)
}

func (d *Door) ended(r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams[r]()
	delete(d.streams, r)
}

// Instead answers for the controller; nil lets it answer itself.
func (d *Door) Instead(answer http.HandlerFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.instead = answer
}

// Calls counts requests, such as "POST operations" and "GET events".
func (d *Door) Calls(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[what]
}

// Keys counts the Idempotency-Keys that came.
func (d *Door) Keys() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.keys)
}

func (d *Door) lead(inner http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inner = inner
}

// Inner is the controller behind the door.
func (d *Door) Inner() http.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inner
}
