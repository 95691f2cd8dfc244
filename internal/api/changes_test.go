package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
)

// stopped is a clock that stands still.
type stopped time.Time

func (s stopped) Now() time.Time { return time.Time(s) }

// A plan is counted as a change: it reads much, and who asks for 30 of them in a
// second means something else.
func TestThirtyChangesOfOneCallerAtOnceAreLetInAndReadingGoesOn(t *testing.T) {
	d := openDoor(t, func(_ *access.Options, o *api.Options) { o.Clock = stopped(time.Now()) })
	plan := visit{
		method: http.MethodPost, path: "/api/v1/fleets/gcp/operations/plan", auth: "Bearer " + token,
		body: `{"kind":"drain","vms":["a"]}`, from: "192.0.2.1",
	}
	for i := range 30 {
		if code, body, _ := d.send(plan); code != http.StatusOK {
			t.Fatalf("plan %d: %d %s", i+1, code, body)
		}
	}
	code, body, header := d.send(plan)
	if code != http.StatusTooManyRequests || !strings.Contains(body, "too many requests") || header.Get("Retry-After") == "" {
		t.Errorf("plan 31: %d %s", code, body)
	}
	if n := d.counts()[access.ReasonRate]; n != 1 {
		t.Errorf("counted %d", n)
	}
	if code, body, _ := d.send(visit{method: http.MethodGet, path: "/api/v1/fleets", auth: "Bearer " + token, from: "192.0.2.1"}); code != http.StatusOK {
		t.Errorf("reading: %d %s", code, body)
	}
}
