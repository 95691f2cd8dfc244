package hooks_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

// Who knows no key can hold connections, but not the door.
func TestStrangersWhoSendNothingKeepNobodyOut(t *testing.T) {
	w := newWorld(t, triggers(t))
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, w)
		for range 200 {
			p.stranger(t, w, 1000, 10)
		}
		began := time.Now()
		if status := p.honest(t, w, fixture(t, "pipeline")); status != http.StatusAccepted || time.Since(began) > time.Second {
			t.Errorf("an honest delivery: %d after %s", status, time.Since(began))
		}
	})
}

func TestABodyThatDoesNotComeIsGivenUpWithinSeconds(t *testing.T) {
	w := newWorld(t, triggers(t))
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, w)
		_, from := p.stranger(t, w, 1000, 10)
		began := time.Now()
		response, err := http.ReadResponse(from, nil)
		w.must(err)
		text, err := io.ReadAll(response.Body)
		w.must(err)
		if response.StatusCode != http.StatusBadRequest || time.Since(began) > 5*time.Second || !strings.Contains(string(text), "did not come whole") {
			t.Errorf("%d after %s: %s", response.StatusCode, time.Since(began), text)
		}
	})
}

// GitLab waits for 10 s: a large delivery gets its turn before.
func TestALargeDeliveryGetsItsTurnThoughStrangersHoldAll(t *testing.T) {
	w := newWorld(t, triggers(t))
	large := fixture(t, "pipeline", `"message": "Take the new kernel\n"`, `"message": "`+strings.Repeat("x", 2<<20)+`"`)
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, w)
		for range 4 {
			p.stranger(t, w, 2<<20, 1<<20+10)
		}
		began := time.Now()
		if status := p.honest(t, w, large); status != http.StatusAccepted || time.Since(began) > 9*time.Second {
			t.Errorf("an honest large delivery: %d after %s", status, time.Since(began))
		}
	})
}

// A connection lives on after a delivery that came in time.
func TestAConnectionIsKeptAfterADelivery(t *testing.T) {
	w := newWorld(t, triggers(t))
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: &http.Transport{DialContext: serve(t, w).dialer(t), MaxConnsPerHost: 1}}
		defer client.CloseIdleConnections()
		for i := range 3 {
			request := w.signed(fixture(t, "pipeline"), fmt.Sprint("k", i), signingNew, w.Now())
			request.RequestURI, request.URL.Scheme, request.URL.Host = "", "http", "sluice"
			response, err := client.Do(request)
			w.must(err)
			if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusAccepted {
				t.Errorf("%d, %v", response.StatusCode, err)
			}
			w.must(response.Body.Close())
			time.Sleep(6 * time.Second) //nolint:forbidigo // synctest: no real time passes
		}
	})
}

// What is held for senders that nobody knows yet is bounded, and given back.
func TestBodiesHoldOnlySoMuchMemory(t *testing.T) {
	w := newWorld(t, triggers(t))
	const strangers = 64
	half := make(chan struct{}, strangers)
	end := make(chan struct{})
	var all sync.WaitGroup
	for range strangers {
		request := httptest.NewRequest(http.MethodPost, hooks.Path, &stuck{left: 1<<20 - 1, half: half, end: end})
		request.Header.Set("webhook-id", "a")
		request.Header.Set("webhook-timestamp", fmt.Sprint(w.Now().Unix()))
		request.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32)))
		all.Go(func() { w.receiver.ServeHTTP(httptest.NewRecorder(), request) })
	}
	for range strangers {
		<-half
	}
	body := fixture(t, "pipeline")
	if status, text := w.serve(w.signed(body, "k", signingNew, w.Now())); status != http.StatusServiceUnavailable || !strings.Contains(text, "too many deliveries at once") {
		t.Errorf("%d %s", status, text)
	}
	close(end)
	all.Wait()
	if status, text := w.serve(w.signed(body, "k", signingNew, w.Now())); status != http.StatusAccepted {
		t.Errorf("%d %s", status, text)
	}
}

// stuck is a body that stops before its end.
type stuck struct {
	left int
	half chan<- struct{}
	end  <-chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	if s.left > 0 {
		n := min(s.left, len(p))
		s.left -= n
		return n, nil
	}
	s.half <- struct{}{}
	<-s.end
	return 0, io.EOF
}
