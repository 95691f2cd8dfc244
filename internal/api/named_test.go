package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// counted counts the operations that are looked up.
type counted struct {
	api.Reader
	lookups atomic.Int32
}

func (c *counted) Operation(ctx context.Context, id string) (*fleet.Operation, error) {
	c.lookups.Add(1)
	return c.Reader.Operation(ctx, id)
}

func (c *counted) FindOperation(ctx context.Context, prefix string) (*fleet.Operation, error) {
	c.lookups.Add(1)
	return c.Reader.FindOperation(ctx, prefix)
}

// One GET is no more work than its limits say, and one line in the log.
func TestARequestThatNamesManyOperationsIsBoundedBeforeItIsJudged(t *testing.T) {
	var reader *counted
	d := openDoor(t, func(_ *access.Options, o *api.Options) {
		reader = &counted{Reader: o.Store}
		o.Store = reader
	})
	_, body, _ := d.send(visit{http.MethodPost, "/api/v1/fleets/gcp/operations", "Bearer " + d.token(nil), "k", `{"kind":"recreate","vms":["a","b"]}`, ""})
	var asked api.Asked
	if err := json.Unmarshal([]byte(body), &asked); err != nil || len(asked.Operations) != 2 {
		t.Fatalf("%s %v", body, err)
	}
	id := asked.Operations[0].ID
	distinct := func(n int) string {
		list := url.Values{}
		for i := range n {
			list.Add("operation", fmt.Sprint("op-unknown-", i))
		}
		return list.Encode()
	}
	for name, c := range map[string]struct {
		query          string
		status         int
		says           string
		lookups, lines int
	}{
		"one":                       {"operation=" + id, 200, id, 2, 1},
		"the same, 200 times":       {"operation=" + strings.Repeat(id+"&operation=", 199) + id, 200, id, 2, 1},
		"two of one fleet":          {"operation=" + id + "&operation=" + asked.Operations[1].ID, 200, asked.Operations[1].ID, 4, 1},
		"one with 1,900 commas":     {"operation=" + strings.Repeat(id+",", 1900) + id, 422, "1901 operations are named, at most 200", 0, 0},
		"1,901 parameters":          {"operation=" + strings.Repeat(id+"&operation=", 1900) + id, 422, "1901 operations are named, at most 200", 0, 0},
		"the first is not there":    {distinct(200), 404, "there is no operation op-unknown-0", 1, 0},
		"too many that are nowhere": {distinct(201), 422, "201 operations are named", 0, 0},
		"nothing":                   {"operation=", 403, "not open to pipelines", 0, 0},
	} {
		for who, bearer := range map[string]string{"pipeline": d.token(nil), "follower": asked.Follow.Token} {
			before, line := reader.lookups.Load(), strings.Count(d.logged(), "a pipeline is allowed")
			code, body, _ := d.send(visit{method: http.MethodGet, path: "/api/v1/events?" + c.query, auth: "Bearer " + bearer})
			if who == "follower" {
				if (code == 200) != (c.status == 200) || code == 404 {
					t.Errorf("%s, %s: %d %s", who, name, code, body)
				}
				continue
			}
			if code != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%s, %s: %d %s", who, name, code, body)
			}
			if n := int(reader.lookups.Load() - before); n > c.lookups {
				t.Errorf("%s, %s: %d operations were looked up", who, name, n)
			}
			if n := strings.Count(d.logged(), "a pipeline is allowed") - line; n != c.lines {
				t.Errorf("%s, %s: %d lines in the log", who, name, n)
			}
		}
	}
}
