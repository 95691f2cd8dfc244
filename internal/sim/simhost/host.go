package simhost

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
	"gitlab.com/sluice-runners/sluice/internal/sim/simsystemd"
)

// Host is one VM. New makes it, switched off; PowerOn starts it.
type Host struct {
	o       Options
	files   *memfs.FS
	podman  *podman
	faults  faults
	server  *server
	locks   *locks
	signer  ssh.Signer
	wait    sync.WaitGroup // everything that runs here
	mu      sync.Mutex
	boot    *boot // nil: off
	boots   int
	journal []string
}

// boot is the time from one start of the kernel to its end.
type boot struct {
	id      string
	ctx     context.Context // ends with the power
	cancel  context.CancelFunc
	systemd *simsystemd.Manager
	procs   map[int]*process
	lastPID int
	up      bool // sshd and units are started
}

// New makes a host that is off. It listens nowhere yet.
func New(o Options) (*Host, error) {
	o = o.withDefaults()
	h := &Host{o: o, files: memfs.New(o.Clock.Now), podman: newPodman(o.Clock.Now), locks: newLocks()}
	_, key, err := ed25519.GenerateKey(o.Random)
	if err != nil {
		return nil, fmt.Errorf("making a host key: %w", err)
	}
	if h.signer, err = ssh.NewSignerFromKey(key); err != nil {
		return nil, fmt.Errorf("making a host key: %w", err)
	}
	if h.server, err = newServer(h); err != nil {
		return nil, err
	}
	h.install()
	return h, nil
}

// install lays out the disk as the image has it.
func (h *Host) install() {
	f, o := h.files, h.o
	for _, dir := range []string{"/etc/systemd/system", "/usr/lib/systemd/system", "/run", "/proc", "/var/lib", "/dev"} {
		_ = f.Mkdir(dir, memfs.Root, 0o755, true) // a new file system has room
	}
	_ = f.Mkdir("/tmp", memfs.Root, 0o777, true)
	_ = f.Mkdir("/root", memfs.Root, 0o700, true)
	for _, user := range []string{o.User, o.RunnerUser} {
		if user != memfs.Root {
			_ = f.Mkdir("/home/"+user, memfs.Root, 0o700, true)
			_ = f.Chown("/home/"+user, user)
		}
	}
	machineID := o.MachineID
	if machineID == "" {
		machineID = h.random(16)
	}
	f.Put("/etc/machine-id", machineID+"\n", memfs.Root, 0o444)
	f.Put("/etc/hostname", o.Name+"\n", memfs.Root, 0o644)
	f.Put("/usr/lib/systemd/system/service.d/10-timeout-abort.conf",
		"[Service]\nTimeoutStopFailureMode=abort\n", memfs.Root, 0o644)
	unit := o.UnitText
	if unit == "" {
		unit = fedoraUnit(o)
	}
	f.Put(o.UnitPath, unit, memfs.Root, 0o644)
	h.Enable(o.Unit)
	_ = f.Mkdir(path.Dir(o.ConfigPath), memfs.Root, 0o755, true)
	_ = f.Chown(path.Dir(o.ConfigPath), o.RunnerUser)
	f.Put(o.ConfigPath, configText(o), o.RunnerUser, 0o600)
	if o.SystemID != "" {
		f.Put(h.systemIDPath(), o.SystemID, o.RunnerUser, 0o600)
	}
}

// Enable lets multi-user.target want a unit. The entry is a link on a real host.
func (h *Host) Enable(unit string) {
	_ = h.files.Mkdir("/etc/systemd/system/multi-user.target.wants", memfs.Root, 0o755, true)
	h.files.Put("/etc/systemd/system/multi-user.target.wants/"+unit, "", memfs.Root, 0o644)
}

func fedoraUnit(o Options) string {
	return fmt.Sprintf(`[Unit]
Description=GitLab Runner
After=network.target

[Service]
ExecStart=/usr/bin/gitlab-runner run --config %s --working-directory /home/%s --service gitlab-runner
User=%s
Restart=always
RestartSec=%s
Environment=HOME=/home/%s

[Install]
WantedBy=multi-user.target
`, o.ConfigPath, o.RunnerUser, o.RunnerUser, o.RestartSec, o.RunnerUser)
}

func configText(o Options) string {
	return fmt.Sprintf(`concurrent = %d
check_interval = 0
shutdown_timeout = 0

[session_server]
  session_timeout = 1800

[[runners]]
  name = %q
  url = %q
  id = %d
  token = %q
  token_obtained_at = 2026-01-01T00:00:00Z
  token_expires_at = %s
  executor = %q
`, o.Concurrent, o.Name, o.GitLabURL, o.RunnerID, o.Token, o.TokenExpiresAt.UTC().Format(time.RFC3339), o.Executor)
}

// systemIDPath is the file beside config.toml.
func (h *Host) systemIDPath() string { return path.Join(path.Dir(h.o.ConfigPath), ".runner_system_id") }

// SystemID is what the runner calls itself: "s_" and 12 hex digits made of the
// machine id as gitlab-runner makes them (its common/system_id_state.go), so
// that a reboot changes nothing and a new machine has a new one.
func (h *Host) SystemID() string {
	if text, err := h.files.ReadFile(h.systemIDPath(), memfs.Root); err == nil {
		return strings.TrimSpace(string(text))
	}
	id, _ := h.files.ReadFile("/etc/machine-id", memfs.Root) // install has put it there
	mac := hmac.New(sha256.New, bytes.TrimSpace(id))
	mac.Write([]byte("gitlab-runner"))
	return "s_" + hex.EncodeToString(mac.Sum(nil))[:12]
}

// Address is where its SSH server listens: host:port, for its whole life.
func (h *Host) Address() string { return h.server.address }

// HostKey is the public half of the incarnation's host key, as a line of
// authorized_keys.
func (h *Host) HostKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(h.signer.PublicKey())))
}

// Files is its disk.
func (h *Host) Files() *memfs.FS { return h.files }

// BootID is the running kernel's; empty when off.
func (h *Host) BootID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.boot == nil {
		return ""
	}
	return h.boot.id
}

// Up says whether sshd and the units have been started in this boot.
func (h *Host) Up() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.boot != nil && h.boot.up
}

// Systemd is PID 1 of the running boot; nil when off.
func (h *Host) Systemd() *simsystemd.Manager {
	if b := h.running(); b != nil {
		return b.systemd
	}
	return nil
}

func (h *Host) running() *boot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.boot
}

// Journal yields the runner unit's lines so far, over all boots.
func (h *Host) Journal() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.journal...)
}

func (h *Host) note(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.journal = append(h.journal, line)
}

// random yields n random bytes in hex; crypto/rand does not fail, and a
// simulation's source must not.
func (h *Host) random(n int) string {
	raw := make([]byte, n)
	if _, err := io.ReadFull(h.o.Random, raw); err != nil {
		panic("simhost: the source of randomness is dry: " + err.Error())
	}
	return hex.EncodeToString(raw)
}

func (h *Host) uuid() string {
	x := h.random(16)
	return strings.Join([]string{x[:8], x[8:12], "4" + x[13:16], "a" + x[17:20], x[20:]}, "-")
}
