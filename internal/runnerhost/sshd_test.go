package runnerhost

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// sshd is a real OpenSSH server on loopback: one process per connection, as
// inetd starts it, so that each has a handle of its own.
type sshd struct {
	t       testing.TB
	dir     string
	binary  string
	address string
	login   ssh.Signer
	keys    map[string]ssh.PublicKey // host keys by type

	mu     sync.Mutex
	config string
	conns  []net.Conn
	count  int
	serve  sync.WaitGroup
}

func newSSHD(t testing.TB) *sshd {
	t.Helper()
	binary, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil || os.Getuid() != 0 {
		missing(t, "this needs /usr/sbin/sshd (openssh-server) and root")
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // #nosec G301 -- as the package makes it
		t.Fatal(err)
	}
	s := &sshd{t: t, dir: t.TempDir(), binary: binary, login: newSigner(t), keys: map[string]ssh.PublicKey{}}
	s.write("authorized_keys", ssh.MarshalAuthorizedKey(s.login.PublicKey()))
	s.hostKey("ed25519", newKey(t))
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s.hostKey("rsa", rsaKey)
	s.configure(
		"HostKey "+s.path("ed25519"), "HostKey "+s.path("rsa"),
		"AuthorizedKeysFile "+s.path("authorized_keys"), "PermitRootLogin prohibit-password",
		"StrictModes no", "UsePAM no", "PidFile none",
		"SetEnv HOME="+s.dir, // without what the user's own profile does and takes
		"LogLevel ERROR")
	s.listen()
	return s
}

func (s *sshd) path(name string) string { return filepath.Join(s.dir, name) }

func (s *sshd) write(name string, text []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sshd) hostKey(name string, key any) {
	s.t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(name, pem.EncodeToMemory(block))
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	s.keys[name] = signer.PublicKey()
	s.write(name+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// configure adds settings, for the connections from now on; the first of a kind
// counts.
func (s *sshd) configure(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = strings.Join(lines, "\n") + "\n" + s.config
}

func (s *sshd) listen() {
	listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = listener.Addr().String()
	s.serve.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.start(conn)
		}
	})
	s.t.Cleanup(func() {
		_ = listener.Close()
		s.cut()
		s.serve.Wait()
	})
}

// start hands a connection to a process of its own.
func (s *sshd) start(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	file, err := conn.(*net.TCPConn).File()
	_ = conn.Close()
	if err != nil {
		s.t.Error(err)
		return
	}
	s.write("config", []byte(s.config))
	cmd := exec.Command(s.binary, "-i", "-e", "-f", s.path("config")) // #nosec G204 -- a test's own
	cmd.Stdin, cmd.Stdout = file, file
	if err := cmd.Start(); err != nil {
		s.t.Error(err)
		return
	}
	kept, err := net.FileConn(file)
	if err != nil {
		s.t.Error(err)
	}
	_ = file.Close()
	s.conns = append(s.conns, kept)
	s.serve.Go(func() { _ = cmd.Wait() })
}

// cut ends every connection, as a network does.
func (s *sshd) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.(*net.TCPConn).CloseRead()
		_ = conn.Close()
	}
	s.conns = nil
}

func (s *sshd) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *sshd) target() engine.Target {
	return engine.Target{
		Ref: fleet.Ref{Fleet: "f", VM: "vm-1"}, Instance: "i-1", Address: s.address,
		HostKeys: []string{string(ssh.MarshalAuthorizedKey(s.keys["ed25519"]))},
	}
}

// hosts logs in as whoever runs the test.
func (s *sshd) hosts(change func(*Options)) *Hosts {
	s.t.Helper()
	me, err := user.Current()
	if err != nil {
		s.t.Fatal(err)
	}
	settings := testSettings()
	settings.User, settings.RunnerUser = me.Username, me.Username
	o := Options{Settings: settings, Signers: []ssh.Signer{newSigner(s.t), s.login}, Clock: realClock{}}
	if change != nil {
		change(&o)
	}
	h, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(h.Close)
	return h
}

// run runs a shell text on the host and yields what it printed.
func (s *sshd) run(h *Hosts, text string, limit time.Duration) (output, error) {
	s.t.Helper()
	l, _, err := h.connection(s.t.Context(), s.target())
	if err != nil {
		s.t.Fatal(err)
	}
	return l.run(s.t.Context(), "timeout -k 2 10 sh -s", text, limit)
}

// theBoot is this machine's.
func theBoot(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func mustContain(t *testing.T, err error, code fleet.Code, words ...string) {
	t.Helper()
	if fleet.CodeOf(err) != code {
		t.Fatalf("code %q, want %q: %v", fleet.CodeOf(err), code, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
}

// proxy is a connection in the middle that can go silent, as a dead peer does.
type proxy struct {
	net.Conn
	mu     sync.Mutex
	silent chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newProxy(conn net.Conn) *proxy {
	return &proxy{Conn: conn, silent: make(chan struct{}), closed: make(chan struct{})}
}

func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !closed(p.silent) {
		close(p.silent)
	}
}

// Read drops what comes once the proxy is silent, and hangs until it is closed.
func (p *proxy) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if !closed(p.silent) {
		return n, err
	}
	<-p.closed
	return 0, net.ErrClosed
}

func (p *proxy) Write(b []byte) (int, error) {
	if closed(p.silent) {
		return len(b), nil // swallowed
	}
	return p.Conn.Write(b)
}

func (p *proxy) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Conn.Close()
}

func fingerprint(key ssh.PublicKey) string { return fmt.Sprint(ssh.FingerprintSHA256(key)) }
