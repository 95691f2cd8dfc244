package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// notes is a journal in memory; the rest of the store is not asked for.
type notes struct {
	api.Reader
	mu   sync.Mutex
	list []fleet.Fact
}

func (n *notes) write(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fleet.Fact{ID: int64(len(n.list)) + 1, Kind: fleet.FactNote, Text: text})
}

func (n *notes) Facts(_ context.Context, after int64, _ string, limit int) ([]fleet.Fact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rest := n.list[min(int(after), len(n.list)):]
	return rest[:min(limit, len(rest))], nil
}

func (n *notes) LastFact(context.Context) (int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int64(len(n.list)), nil
}

// wires is a network without a buffer, in the time of a bubble.
type wires struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newWires() *wires { return &wires{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (w *wires) Accept() (net.Conn, error) {
	select {
	case conn := <-w.conns:
		return conn, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wires) Close() error { w.once.Do(func() { close(w.closed) }); return nil }

func (w *wires) Addr() net.Addr { return &net.UnixAddr{Name: "wires", Net: "unix"} }

func (w *wires) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case w.conns <- there:
		return here, nil
	case <-w.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pass lets the time of a bubble pass.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest: no real time passes

// quiet is the API over notes and wires.
type quiet struct {
	*notes
	*wires
	handler *api.Server
	server  *http.Server
}

func newQuiet(t *testing.T) *quiet {
	t.Helper()
	q := &quiet{notes: &notes{}, wires: newWires()}
	q.handler = api.New(api.Options{Store: q.notes, Clock: real{}, Log: slog.New(slog.DiscardHandler), Version: "test"})
	q.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q.handler.ServeHTTP(w, r.WithContext(api.WithCaller(r.Context(), fleet.Actor{Name: "somebody"})))
		}),
		ReadTimeout: 30 * time.Second, WriteTimeout: 2 * time.Minute,
	}
	q.server.RegisterOnShutdown(q.handler.EndStreams)
	go func() { _ = q.server.Serve(q.wires) }()
	return q
}

// get sends a request and yields the connection.
func (q *quiet) get(t *testing.T, headers string) net.Conn {
	t.Helper()
	conn, err := q.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: sluice\r\n%s\r\n", headers); err != nil {
		t.Fatal(err)
	}
	return conn
}

// body sends a request and yields the beginning of its answer.
func (q *quiet) body(t *testing.T, headers string) (net.Conn, *http.Response) {
	t.Helper()
	conn := q.get(t, headers)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, response
}

func TestAFollowerThatTakesNothingIsDroppedAndHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t)
		defer func() { _ = q.server.Close() }()
		slow := q.get(t, "Accept: text/event-stream\r\n") // and reads nothing
		defer func() { _ = slow.Close() }()
		_, response := q.body(t, "Accept: application/x-ndjson\r\n")
		lines := bufio.NewScanner(response.Body)
		for i := range 5 {
			q.write(fmt.Sprint("event ", i))
			began := time.Now()
			for lines.Scan() && len(lines.Bytes()) == 0 {
			}
			if !strings.Contains(lines.Text(), fmt.Sprint("event ", i)) || time.Since(began) > 200*time.Millisecond {
				t.Errorf("%q after %s", lines.Text(), time.Since(began))
			}
			pass(time.Second)
		}
		pass(6 * time.Second)
		if rest, err := io.ReadAll(slow); strings.Contains(string(rest), "event 4") || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("the slow one read %q, %v", rest, err)
		}
		_, again := q.body(t, "Accept: text/event-stream\r\nLast-Event-ID: 3\r\n") // he had two of them
		if got := sseEvents(t, again, 2); got[0].Text != "event 3" || got[1].Text != "event 4" {
			t.Errorf("resumed with %+v", got)
		}
	})
}

func TestAQuietStreamHasAHeartbeatEvery15sAndIsAskedAnewAfterAnHour(t *testing.T) {
	for accept, beat := range map[string]string{"text/event-stream": ":", "application/x-ndjson": ""} {
		synctest.Test(t, func(t *testing.T) {
			q := newQuiet(t)
			defer func() { _ = q.server.Close() }()
			began := time.Now()
			_, response := q.body(t, "Accept: "+accept+"\r\n")
			var beats []time.Duration
			for lines := bufio.NewScanner(response.Body); lines.Scan(); {
				if lines.Text() == beat {
					beats = append(beats, time.Since(began))
				}
			}
			if took := time.Since(began); took < time.Hour || took > time.Hour+16*time.Second {
				t.Errorf("%s: it ended after %s", accept, took)
			}
			if len(beats) < 240 || beats[len(beats)-1]-beats[len(beats)-2] != 15*time.Second {
				t.Errorf("%s: %d heartbeats", accept, len(beats))
			}
		})
	}
}

func TestStreamsAndLongPollsEndCleanlyWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t)
		_, stream := q.body(t, "Accept: text/event-stream\r\n")
		var group sync.WaitGroup
		var streamed, polled []byte
		group.Go(func() {
			var err error
			if streamed, err = io.ReadAll(stream.Body); err != nil {
				t.Errorf("the stream was cut: %v", err)
			}
		})
		polling, err := q.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			_, _ = io.WriteString(polling, "GET /api/v1/events?wait=20 HTTP/1.1\r\nHost: sluice\r\n\r\n")
			response, err := http.ReadResponse(bufio.NewReader(polling), nil)
			if err == nil {
				polled, err = io.ReadAll(response.Body)
			}
			if err != nil {
				t.Errorf("the long poll was cut: %v", err)
			}
		})
		pass(time.Second)
		began := time.Now()
		if err := q.server.Shutdown(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		group.Wait()
		if !strings.HasPrefix(string(streamed), "retry: ") || !strings.Contains(string(polled), `"events":[]`) {
			t.Errorf("streamed %q, polled %q", streamed, polled)
		}
	})
}

func TestAClientFollowsAcrossARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t)
		here := make(chan *quiet, 1)
		here <- q
		c, err := client.New(client.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now := <-here
			here <- now
			if now == nil {
				http.Error(w, "nobody is there", http.StatusBadGateway)
				return
			}
			now.handler.ServeHTTP(w, r)
		})})
		if err != nil {
			t.Fatal(err)
		}
		go func() { // ten lives, each writing while it is there and while it is not
			for life := range 10 {
				for i := range 10 {
					q.write(fmt.Sprint("event ", life*20+i))
					pass(30 * time.Millisecond)
				}
				old := <-here
				here <- nil
				old.handler.EndStreams()
				_ = old.server.Close()
				for i := range 10 {
					q.write(fmt.Sprint("event ", life*20+10+i))
					pass(300 * time.Millisecond)
				}
				next := newQuiet(t)
				next.notes.list = q.notes.list
				q = next
				<-here
				here <- next
			}
			_ = q.server.Close()
		}()
		var told []string
		enough := errors.New("enough")
		err = c.Follow(t.Context(), client.Following{}, func(e client.Event) error {
			told = append(told, e.Text)
			if e.Text == "event 199" {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		for i, text := range told {
			if text != fmt.Sprint("event ", i) {
				t.Fatalf("event %d is %q", i, text)
			}
		}
	})
}
