package api

import (
	"strings"
	"testing"
)

// Whatever Accept says: nobody gets a stream who does not name one.
func FuzzNegotiate(f *testing.F) {
	for _, seed := range []string{"", "*/*", "text/event-stream", "application/x-ndjson;q=0.5, text/event-stream;q=0.1", "text/*;q=1e309", "a/b;q=NaN,text/event-stream;q=0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		lower := strings.ToLower(accept)
		switch got := negotiate(accept); {
		case got == asSSE && !strings.Contains(lower, "event-stream"), got == asNDJSON && !strings.Contains(lower, "json"):
			t.Errorf("%q: %v", accept, got)
		}
	})
}
