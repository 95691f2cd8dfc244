package hooks_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/engine/queue"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// childVar holds the instructions of a process that lives to be killed.
const childVar = "SLUICE_TEST_HOOKS_CHILD"

// instructions are what a child is told.
type instructions struct {
	Journal string
	Die     string // the point to be killed at; "" = never
	Whole   bool   // the whole of Sluice, as `sluice serve` is
}

func TestMain(m *testing.M) {
	if raw := os.Getenv(childVar); raw != "" {
		fmt.Fprintln(os.Stderr, child(raw))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// childT is as much of a testing.TB as a process without a test needs.
type childT struct{ testing.TB }

func (childT) Helper()           {}
func (childT) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

// mortal dies, as kill -9 does, at one point.
type mortal struct{ die string }

func (m mortal) point(name string) {
	if m.die != name {
		return
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // until the signal is here
}

type mortalStore struct {
	hooks.Store
	mortal
}

func (s mortalStore) ReceiveDelivery(ctx context.Context, d *fleet.Delivery) (*fleet.Delivery, error) {
	s.point("receive:before")
	first, err := s.Store.ReceiveDelivery(ctx, d)
	s.point("receive:after")
	return first, err
}

func (s mortalStore) UpdateDelivery(ctx context.Context, d *fleet.Delivery) error {
	s.point("update:before")
	err := s.Store.UpdateDelivery(ctx, d)
	s.point("update:after")
	return err
}

type mortalControl struct {
	hooks.Control
	mortal
}

func (c mortalControl) Ask(ctx context.Context, in control.Intent) ([]control.Answer, error) {
	c.point("ask " + in.VMs[0] + ":before")
	answers, err := c.Control.Ask(ctx, in)
	c.point("ask " + in.VMs[0] + ":after")
	return answers, err
}

// points are where a delivery's life may be cut off.
func points() []string {
	var list []string
	for _, call := range []string{"receive", "ask a", "ask b", "update"} {
		list = append(list, call+":before", call+":after")
	}
	return list
}

// resting leaves operations as they are: here only the asking counts.
type resting struct{}

func (resting) Look(context.Context, string) (time.Duration, bool, error) {
	return time.Hour, false, nil
}

func (resting) LookChore(context.Context, string) (time.Duration, bool, error) {
	return time.Hour, false, nil
}
func (resting) Sweep(context.Context) error { return nil }

type uncounted struct{}

func (uncounted) Delivery(string, string) {}

// child receives and works off deliveries until it is killed.
func child(raw string) error {
	var in instructions
	if err := json.Unmarshal([]byte(raw), &in); err != nil {
		return err
	}
	if in.Whole {
		return serveWhole(in)
	}
	ctx, log, fate := context.Background(), slog.New(slog.DiscardHandler), mortal{in.Die}
	s, err := store.Open(ctx, store.Options{Path: in.Journal, Clock: wall{}})
	if err != nil {
		return err
	}
	q, err := queue.New(ctx, queue.Options{DB: s.DB(), Source: s, Looker: resting{}, Clock: wall{}, Log: log})
	if err != nil {
		return err
	}
	specs := map[string]fleet.Spec{"gcp": {Name: "gcp", VMs: []string{"a", "b"}, RunnerID: 7, HasGitLab: true, Drain: fleet.DefaultDrainPolicy()}}
	kept := mortalStore{s, fate}
	q.Deliveries = &hooks.Worker{
		Store: kept, Images: &shelf{}, Clock: wall{}, Log: log,
		Control: mortalControl{control.New(control.Options{Fleets: specs, Store: s, Waker: q, Clock: wall{}, Log: log}), fate},
	}
	keys, err := hooks.NewKeys([]string{signingNew}, nil)
	if err != nil {
		return err
	}
	receiver := hooks.NewReceiver(hooks.Options{
		Keys: keys, Triggers: triggers(childT{})[:1], Fleets: specs, Store: kept, Waker: q, Observer: uncounted{}, Clock: wall{}, Log: log,
	})
	if err := q.Start(ctx); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, receiver) //nolint:gosec // no timeouts: the test has its own
}

// process is a child that runs.
type process struct {
	address string
	cmd     *exec.Cmd
	stderr  bytes.Buffer
}

func startProcess(t testing.TB, in instructions) *process {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), childVar+"="+string(raw))
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.kill()
		t.Fatalf("the process did not begin: %v\n%s", err, p.stderr.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
	p.address = strings.TrimSpace(line)
	return p
}

// die is kill -9.
func (p *process) die() { _ = p.cmd.Process.Kill() } // it may be dead

func (p *process) kill() {
	p.die()
	_ = p.cmd.Wait()
}

// post sends a request over the network; status 0 = no answer came.
func (p *process) post(client *http.Client, request *http.Request) int {
	sent := request.Clone(context.Background())
	sent.RequestURI, sent.URL.Scheme, sent.URL.Host = "", "http", p.address
	response, err := client.Do(sent)
	if err != nil {
		return 0
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return 0
	}
	return response.StatusCode
}

// await polls until what is true, or fails.
func await(t testing.TB, what string, true func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !true(); {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// cases.md T82. The process is killed at every point between the receipt of a
// delivery and the end of its work; GitLab sends it again, or does not. What
// was acknowledged, and what was stored before the answer got lost, is done
// once; what was neither is not done.
func TestADeliveryIsDoneOnceWhereverTheProcessIsKilled(t *testing.T) {
	for _, point := range points() {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s again=%t", point, again), func(t *testing.T) {
				t.Parallel()
				killedAt(t, point, again)
			})
		}
	}
}

func killedAt(t *testing.T, point string, again bool) {
	t.Helper()
	w := newWorld(t, nil)
	w.now = time.Now()
	journal := w.store.Path()
	body := fixture(t, "pipeline")
	request := func() *http.Request { return w.signed(body, "the-key", signingNew, time.Now()) }
	client := &http.Client{Timeout: 10 * time.Second}

	p := startProcess(t, instructions{Journal: journal, Die: point})
	status := p.post(client, request())
	if dead := p.cmd.Wait(); dead == nil || !strings.Contains(dead.Error(), "killed") {
		t.Fatalf("it was not killed: %v\n%s", dead, p.stderr.String())
	}
	stored := point != "receive:before"
	if acknowledged := status == http.StatusAccepted; acknowledged != !strings.HasPrefix(point, "receive") {
		t.Errorf("status %d before the end", status)
	}
	p = startProcess(t, instructions{Journal: journal})
	if again {
		if status := p.post(client, request()); status/100 != 2 {
			t.Errorf("sent again: %d", status)
		}
	}
	var want []string
	if stored || again {
		want = []string{"gcp/a runner-5f1d0c8e", "gcp/b runner-5f1d0c8e"}
		await(t, "the delivery is worked off", func() bool {
			list, err := w.store.Deliveries(t.Context(), fleet.DeliveryFilter{Outcome: fleet.DeliveryAsked})
			return err == nil && len(list) == 1
		})
	}
	w.wantOperations(want...)
	if list, err := w.store.Deliveries(t.Context(), fleet.DeliveryFilter{}); err != nil || len(list) > 1 || len(list) == 1 && list[0].Repeats != map[bool]int{again && stored: 1}[true] {
		t.Errorf("%+v, %v", list, err)
	}
}

// journalIn names a journal in a short directory: a socket lies beside it.
func journalIn(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hooks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "sluice.db")
}
