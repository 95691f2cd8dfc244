package api_test

import (
	"net/http"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/control"
)

// A caller whose limits are empty is not a caller without limits.
func TestAFollowTokenOfNoOperationsMayDoNothing(t *testing.T) {
	for name, operations := range map[string][]string{"null": nil, "none": {}} {
		d := openDoor(t)
		if err := d.store.SaveFollow(t.Context(), access.Hash("sluicef_x"), operations, d.clock.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		for _, v := range []visit{
			{method: http.MethodPost, path: "/api/v1/fleets/other/operations", body: `{"kind":"delete","vms":["x"],"no_drain":true}`},
			{method: http.MethodPost, path: "/api/v1/operations/op-x/cancel"},
			{method: http.MethodGet, path: "/api/v1/fleets"},
			{method: http.MethodGet, path: "/api/v1/fleets/other/vms"},
			{method: http.MethodGet, path: "/api/v1/operations"},
			{method: http.MethodGet, path: "/api/v1/events"},
			{method: http.MethodGet, path: "/api/v1/deliveries"},
		} {
			v.auth = "Bearer sluicef_x"
			if code, body, _ := d.send(v); code != http.StatusForbidden {
				t.Errorf("%s: %s %s: %d %s", name, v.method, v.path, code, body)
			}
		}
		if ops, err := d.store.Operations(t.Context(), control.Filter{}); err != nil || len(ops) != 0 {
			t.Errorf("%s: %d operations, %v", name, len(ops), err)
		}
	}
}
