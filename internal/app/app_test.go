package app

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const bearer = "sluice_test"

// output is a log that can be read while it is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) await(t *testing.T, pattern string) string {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	for limit := time.Now().Add(10 * time.Second); ; {
		o.mu.Lock()
		found := expression.FindStringSubmatch(o.text.String())
		o.mu.Unlock()
		if found != nil {
			return found[len(found)-1]
		}
		if time.Now().After(limit) {
			t.Fatalf("the log never said %s:\n%s", pattern, o.text.String())
		}
		select {
		case <-t.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// settings is a configuration of one fleet whose adapters nobody calls.
func settings(t *testing.T) (*config.Config, map[string]*engine.Fleet) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &config.Config{
		Store: config.Store{SQLite: filepath.Join(dir, "a.db")},
		Server: config.Server{
			Socket: filepath.Join(dir, "a.sock"), Listen: "127.0.0.1:0",
			Tokens: []config.Token{{Name: "alice", SHA256: access.Hash(bearer)}},
		},
		Log: config.Log{Level: "info", Format: "text"},
	}
	spec := fleet.Spec{Name: "gcp", VMs: []string{"a"}, MaxUnavailable: 1, Drain: fleet.DefaultDrainPolicy(), HasRunnerToken: true}
	return c, map[string]*engine.Fleet{"gcp": {Spec: spec}}
}

func open(t *testing.T, o Options) *App {
	t.Helper()
	a, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// listening runs a server until the test's end, and yields its address on TCP.
func listening(t *testing.T, c *config.Config, fleets map[string]*engine.Fleet) string {
	t.Helper()
	log := &output{}
	a := open(t, Options{Config: c, Role: RoleServe, Command: "sluice serve", Version: "test", Log: log, Fleets: fleets})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the server ended with: %v", err)
		}
	})
	return log.await(t, `msg=listening address=(\S+)`)
}

func TestTheServerAnswersOnItsSocketAndWithATokenOnTCP(t *testing.T) {
	c, fleets := settings(t)
	log := &output{}
	a := open(t, Options{Config: c, Role: RoleServe, Command: "sluice serve", Version: "test", Log: log, Fleets: fleets})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx) }()
	address := log.await(t, `msg=listening address=(\S+)`)
	log.await(t, `msg=ready socket=\S+ fleets=1 after=`)

	info, err := os.Stat(c.Server.Socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, %v", info.Mode(), err)
	}
	local, err := client.New(client.Options{Socket: c.Server.Socket})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := local.Fleets(t.Context()); err != nil || list.Fleets[0].Name != "gcp" {
		t.Errorf("over the socket: %+v, %v", list, err)
	}
	for token, want := range map[string]fleet.Code{bearer: "", "wrong": client.CodeUnauthorized} {
		remote, err := client.New(client.Options{URL: "http://" + address, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Fleets(t.Context()); fleet.CodeOf(err) != want {
			t.Errorf("over TCP with %s: %v", token, err)
		}
	}
	for path, want := range map[string]string{"/livez": "ok", "/readyz": "ok", "/metrics": `sluice_vms{fleet="gcp",state="serving"} 1`} {
		if text := get(t, "http://"+address+path); !strings.Contains(text, want) {
			t.Errorf("%s: %s", path, text)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("the end: %v", err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response)
}

// read yields an answer's body.
func read(t *testing.T, response *http.Response) string {
	t.Helper()
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOneEngineAtATimeAndReadersBesideIt(t *testing.T) {
	c, fleets := settings(t)
	reader := func() {
		t.Helper()
		a := open(t, Options{Config: c, Role: RoleRead, Fleets: fleets})
		in, err := client.New(client.Options{Handler: a.Handler()})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := in.VMs(t.Context(), "gcp"); err != nil || list.Vms[0].State != "serving" {
			t.Errorf("%+v, %v", list, err)
		}
		if _, err := in.Ask(t.Context(), "gcp", "", client.AskBody{Kind: client.AskBodyKindUndrain, Vms: []string{"a"}}); err == nil {
			t.Error("a reader wrote")
		}
	}
	reader() // before there is a journal
	open(t, Options{Config: c, Role: RoleServe, Command: "sluice serve", Fleets: fleets})
	reader()
	_, err := Open(t.Context(), Options{Config: c, Role: RoleWork, Command: "sluice drain gcp/a", Fleets: fleets})
	if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "sluice serve") {
		t.Errorf("a second engine: %v", err)
	}
}

func TestADeadServersSocketIsReplacedAndAFileIsNot(t *testing.T) {
	c, _ := settings(t)
	first, err := listenSocket(t.Context(), c.Server.Socket)
	if err != nil {
		t.Fatal(err)
	}
	second, err := listenSocket(t.Context(), c.Server.Socket)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = first.Close(), second.Close()
	if err := os.WriteFile(c.Server.Socket, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenSocket(t.Context(), c.Server.Socket); fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("a file was replaced: %v", err)
	}
}

func TestTheOwnerIsMadeOnceForAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	first, err := owner(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := owner(path)
	if err != nil || again != first || !strings.HasPrefix(first, "sluice-") {
		t.Errorf("%s, then %s, %v", first, again, err)
	}
	if other, err := owner(filepath.Join(t.TempDir(), "b.db")); err != nil || other == first {
		t.Errorf("another journal has the same owner: %s, %v", other, err)
	}
}

func TestAReaderKeepsHostKeysForItselfOnly(t *testing.T) {
	keys := &trustStore{journal: blank{}, readOnly: true}
	ref := fleet.Ref{Fleet: "gcp", VM: "a"}
	if err := keys.Trust(t.Context(), ref, "i-1", "ssh-ed25519 AAAA"); err != nil {
		t.Fatal(err)
	}
	if known, err := keys.Known(t.Context(), ref, "i-1"); err != nil || len(known) != 1 {
		t.Errorf("%v, %v", known, err)
	}
	if known, err := keys.Known(t.Context(), ref, "i-2"); err != nil || len(known) != 0 {
		t.Errorf("another incarnation has the key: %v, %v", known, err)
	}
	writer := &trustStore{journal: blank{}}
	if err := writer.Trust(t.Context(), ref, "i-1", "x"); err == nil {
		t.Error("the blank journal kept a key")
	}
}

// BenchmarkStartToReady prints how long it takes from opening to the first
// answer (bar: 0.5 s).
func BenchmarkStartToReady(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		c := &config.Config{Store: config.Store{SQLite: filepath.Join(dir, "a.db")}, Log: config.Log{Level: "error"}}
		a, err := Open(b.Context(), Options{Config: c, Role: RoleServe, Fleets: map[string]*engine.Fleet{"gcp": {Spec: fleet.Spec{Name: "gcp", VMs: []string{"a"}}}}})
		if err != nil {
			b.Fatal(err)
		}
		if err := a.ready(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := a.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
