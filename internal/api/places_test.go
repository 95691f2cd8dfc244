package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// One follow token must not take the places of everybody: who has none left is
// refused, others follow on, and a wait without a place is answered soon.
func TestAFollowTokenTakesItsOwnPlacesAlone(t *testing.T) {
	d := openDoor(t)
	_, asked, _ := d.asked(d.token(nil), "k")
	op := asked.Operations[0].ID
	server := httptest.NewServer(d.server)
	t.Cleanup(server.Close)
	t.Cleanup(d.server.EndStreams)
	get := func(bearer, accept, query string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/events?operation="+op+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+bearer)
		request.Header.Set("Accept", accept)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	follower, places := asked.Follow.Token, 0
	for ; places < 100; places++ {
		response := get(follower, "text/event-stream", "")
		if response.StatusCode == http.StatusTooManyRequests {
			break
		}
		if response.StatusCode != http.StatusOK {
			t.Fatalf("stream %d: %s", places, response.Status)
		}
	}
	if places != 64 {
		t.Errorf("it has %d places", places)
	}
	if response := get(token, "text/event-stream", ""); response.StatusCode != http.StatusOK {
		t.Errorf("a person: %s", response.Status)
	}
	last, err := d.store.LastFact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.store.AppendFacts(t.Context(), []fleet.Fact{{At: time.Now(), Operation: op, Kind: fleet.FactNote, Text: "news"}}); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[int64]int{last: 1, last + 1: 0} {
		began := time.Now()
		response := get(follower, "application/json", fmt.Sprint("&wait=20&after=", after))
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("a wait without a place: %s, %v", response.Status, err)
		}
		var piece client.Events
		if err := json.Unmarshal(body, &piece); err != nil || len(piece.Events) != want || piece.Next != last+1 {
			t.Errorf("after %d: %s, %v", after, body, err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it was held for %s", took)
		}
	}
}
