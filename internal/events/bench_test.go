package events_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

const (
	followers   = 500
	benchToken  = "sluice_bench"
	callers     = 10                    // who follow, under tokens of their own: one has 64 places
	benchURL    = "SLUICE_BENCH_FOLLOW" // set in the process that follows: the server's URL
	benchTime   = 15 * time.Second
	lastOfBench = "the last"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(benchURL); url != "" {
		if err := followMany(url, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// BenchmarkFollowers prints what 500 followers of one operation cost the
// server: percent of a core (bar 10), and how long after its commit an event
// was told. The followers are in another process, over TCP, with tokens; the
// journal is on disk, and its writing is part of the cost.
func BenchmarkFollowers(b *testing.B) {
	for _, each := range []time.Duration{time.Second, 200 * time.Millisecond, time.Hour} {
		name := fmt.Sprintf("events-every-%s", each)
		if each > benchTime {
			name = "no-events"
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				benchFollowers(b, each)
			}
		})
	}
}

func benchFollowers(b *testing.B, each time.Duration) {
	s, op := benchStore(b)
	server := benchServer(b, s)
	out, ended := benchChild(b, server.URL, op)
	if line, err := out.ReadString('\n'); err != nil || line != "all follow\n" {
		b.Fatalf("%q, %v", line, err)
	}
	write := func(text string) {
		if err := s.AppendFacts(b.Context(), []fleet.Fact{{At: time.Now(), Operation: op, Kind: fleet.FactNote, Text: text}}); err != nil {
			b.Fatal(err)
		}
	}
	before, limit := cpuTime(b), time.After(benchTime)
	ticker := time.NewTicker(each)
	defer ticker.Stop()
	written := 0
	for going := true; going; {
		select {
		case <-ticker.C:
			write("waits for job 4711 of group/project, which runs since 12:00:00")
			written++
		case <-limit:
			going = false
		}
	}
	used := cpuTime(b) - before
	write(lastOfBench)
	var told int
	var median, slow time.Duration
	if _, err := fmt.Fscanln(out, &told, &median, &slow); err != nil {
		b.Fatal(err)
	}
	if err := ended(); err != nil {
		b.Fatal(err)
	}
	if want := followers * (written + 2); told != want { // the asking and the last
		b.Errorf("%d events were told, want %d", told, want)
	}
	b.ReportMetric(100*used.Seconds()/benchTime.Seconds(), "%core")
	b.ReportMetric(float64(median.Microseconds())/1e3, "ms-p50")
	b.ReportMetric(float64(slow.Microseconds())/1e3, "ms-p99")
	b.ReportMetric(float64(written), "events")
	b.ReportMetric(0, "ns/op")
}

func benchStore(b testing.TB) (*store.Store, string) {
	b.Helper()
	s, err := store.Open(b.Context(), store.Options{Path: filepath.Join(b.TempDir(), "bench.db"), Clock: wall{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s, benchAsk(b, s)
}

var benchFleets = map[string]fleet.Spec{
	"lab": {Name: "lab", VMs: []string{"a"}, HasRunnerToken: true, MaxUnavailable: 1, Drain: fleet.DefaultDrainPolicy()},
}

func benchControl(s *store.Store) *control.Control {
	return control.New(control.Options{Fleets: benchFleets, Store: s, Waker: nobody{}, Clock: wall{}, Log: slog.New(slog.DiscardHandler)})
}

func benchAsk(b testing.TB, s *store.Store) string {
	b.Helper()
	answers, err := benchControl(s).Ask(b.Context(), control.Intent{Fleet: "lab", VMs: []string{"a"}, Kind: fleet.KindRecreate})
	if err != nil {
		b.Fatal(err)
	}
	return answers[0].Operation.ID
}

func benchServer(b testing.TB, s *store.Store) *httptest.Server {
	b.Helper()
	list := []access.Token{{Name: "bench", SHA256: access.Hash(benchToken)}}
	for i := range callers {
		list = append(list, access.Token{Name: fmt.Sprint("bench-", i), SHA256: access.Hash(fmt.Sprint(benchToken, i))})
	}
	tokens, err := access.NewTokens(list, wall{})
	if err != nil {
		b.Fatal(err)
	}
	handler := api.New(api.Options{
		Control: benchControl(s), Store: s, Fleets: benchFleets, Tokens: tokens, Clock: wall{}, Version: "bench", Log: slog.New(slog.DiscardHandler),
	})
	server := httptest.NewServer(handler)
	b.Cleanup(func() {
		handler.EndStreams()
		server.Close()
	})
	return server
}

// benchChild starts the process that follows.
func benchChild(b *testing.B, url, op string) (*bufio.Reader, func() error) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0], op)
	cmd.Env = append(os.Environ(), benchURL+"="+url)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill() })
	return bufio.NewReader(out), func() error {
		_, _ = io.Copy(io.Discard, out) // what is left; Wait tells what went wrong
		return cmd.Wait()
	}
}

// followMany is that process: it says when all follow, and at the end how many
// events were told and how late.
func followMany(url, op string) error {
	var group, begun sync.WaitGroup
	begun.Add(followers)
	var mu sync.Mutex
	var late []time.Duration
	var problems []error
	told := 0
	done := errors.New("done")
	for i := range followers {
		c, err := client.New(client.Options{URL: url, Token: fmt.Sprint(benchToken, i%callers)})
		if err != nil {
			return err
		}
		group.Go(func() {
			first := sync.OnceFunc(begun.Done)
			err := c.Follow(context.Background(), client.Following{Operations: []string{op}}, func(e client.Event) error {
				mu.Lock()
				defer mu.Unlock()
				first()
				told++
				switch e.Text {
				case lastOfBench:
					late = append(late, time.Since(e.At))
					return done
				default:
					if e.Kind == "note" {
						late = append(late, time.Since(e.At))
					}
					return nil
				}
			})
			if !errors.Is(err, done) {
				mu.Lock()
				defer mu.Unlock()
				problems = append(problems, err)
			}
		})
	}
	begun.Wait()
	fmt.Println("all follow")
	group.Wait()
	slices.Sort(late)
	fmt.Println(told, int64(late[len(late)/2]), int64(late[len(late)*99/100]))
	return errors.Join(problems...)
}

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

type nobody struct{}

func (nobody) Wake(context.Context, string) error { return nil }

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
