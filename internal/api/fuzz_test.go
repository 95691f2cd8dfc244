package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Whatever is sent as a request for operations, and under whatever key: it is
// planned or refused with a problem, and nothing breaks.
func FuzzAsk(f *testing.F) {
	for _, seed := range []string{
		recreateA, `{"kind":"drain","vms":["a"],"policy":{"cap":"10m"}}`, `{"kind":"create","vms":["b"],"recreate":true}`, `{}`, `null`, `[`,
		`{"kind":"delete","vms":["a","a"],"no_drain":true,"parallel":9}`, `{"kind":"drain","vms":[null]}`, `{"kind":"drain","vms":["\u0000"]}`,
	} {
		f.Add(seed, "gcp", "application/json")
	}
	d := openDoor(f)
	f.Fuzz(func(t *testing.T, body, fleetName, contentType string) {
		request := httptest.NewRequestWithContext(api.WithCaller(t.Context(), fleet.Actor{Name: "fuzz"}), http.MethodPost, "/api/v1/fleets/x/operations/plan", strings.NewReader(body))
		request.URL.Path = "/api/v1/fleets/" + fleetName + "/operations/plan"
		request.Header.Set("Content-Type", contentType)
		answer := httptest.NewRecorder()
		d.server.ServeHTTP(answer, request)
		switch {
		case answer.Code == http.StatusOK:
		case answer.Code >= 400 && answer.Code < 500:
			var p struct{ Code string }
			if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil || p.Code == "" {
				t.Errorf("%q: %d %s", body, answer.Code, answer.Body.String())
			}
		default:
			t.Errorf("%q: %d %s", body, answer.Code, answer.Body.String())
		}
	})
}

// Whatever Authorization header comes, nobody is let in by it, and the answer
// is a problem.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{"", "Bearer", "Bearer a.b.c", "bearer sluicef_x", "Basic eDp5", "Bearer eyJhbGciOiJub25lIn0.e30."} {
		f.Add(seed)
	}
	d := openDoor(f)
	f.Fuzz(func(t *testing.T, header string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/fleets", nil)
		request.Header.Set("Authorization", header)
		d.sent++
		request.RemoteAddr = "[fd00::" + string("0123456789abcdef"[d.sent%16]) + "]:1"
		d.clock.advance(1e10) // nobody is slowed
		answer := httptest.NewRecorder()
		d.server.ServeHTTP(answer, request)
		if answer.Code != http.StatusUnauthorized || !strings.Contains(answer.Body.String(), `"code":"unauthorized"`) {
			t.Errorf("%q: %d %s", header, answer.Code, answer.Body.String())
		}
	})
}
