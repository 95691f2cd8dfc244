package simhost

import (
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
)

// faults are what is wrong with a host just now.
type faults struct {
	mu      sync.Mutex
	missing []string // commands that are not installed
	denied  []string // words of a command that sudo refuses, in order
	empty   int      // answers of systemctl show still to be empty
	banner  string   // noise on standard output before every command
	hung    chan struct{}
	slow    time.Duration
	cut     int // bytes of output after which the next session's connection is cut
	wrong   ssh.Signer
}

// Uninstall takes a command away (podman, pidwait); Reinstall puts all back.
func (h *Host) Uninstall(command string) {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.missing = append(h.faults.missing, command)
}

// Reinstall undoes Uninstall.
func (h *Host) Reinstall() {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.missing = nil
}

func (f *faults) lacks(command string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.missing, command)
}

// RefuseSudo lets sudo refuse every command that begins with these words
// ("systemctl", "stop"); no words: nothing is refused any more.
func (h *Host) RefuseSudo(words ...string) {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.denied = words
}

func (f *faults) sudoDenies(args []string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.denied) == 0 || len(args) < len(f.denied) {
		return false
	}
	got := slices.Clone(args[:len(f.denied)])
	got[0] = got[0][strings.LastIndexByte(got[0], '/')+1:]
	return slices.Equal(got, f.denied)
}

// EmptyAnswers makes the next n answers of systemctl show empty, as while
// systemd re-executes.
func (h *Host) EmptyAnswers(n int) {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.empty = n
}

func (f *faults) swallow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.empty == 0 {
		return false
	}
	f.empty--
	return true
}

// Banner puts noise on standard output before every command, as a careless
// .bashrc does.
func (h *Host) Banner(text string) {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.banner = text
}

// Hang freezes the host as its clients see it: nothing is accepted, read or
// written, and no connection breaks. Thaw ends it.
func (h *Host) Hang() {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	if h.faults.hung == nil {
		h.faults.hung = make(chan struct{})
	}
}

// Thaw ends Hang.
func (h *Host) Thaw() {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	if h.faults.hung != nil {
		close(h.faults.hung)
		h.faults.hung = nil
	}
}

// Slow delays every command by d.
func (h *Host) Slow(d time.Duration) {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.slow = d
}

// CutAfter cuts the connection of the next command after n bytes of its
// output (at least one). The command goes on.
func (h *Host) CutAfter(n int) {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.cut = max(n, 1)
}

func (f *faults) takeCut() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.cut
	f.cut = 0
	return n
}

// WrongHostKey makes new connections meet another machine's key; nil ends it.
func (h *Host) WrongHostKey(s ssh.Signer) {
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	h.faults.wrong = s
}

// Unreachable refuses connections and cuts those there are, until Reachable.
func (h *Host) Unreachable() { h.server.close() }

// Reachable ends Unreachable.
func (h *Host) Reachable() {
	if b := h.running(); b != nil && h.Up() {
		h.server.open(b)
	}
}

// ForeignDropIn writes another owner's drain drop-in.
func (h *Host) ForeignDropIn(name, owner string) {
	h.files.Put("/run/systemd/system/"+h.o.Unit+".d/"+name,
		"# owner: "+owner+"\n# operation: op-foreign\n# number: 7\n[Service]\nRestart=no\n", memfs.Root, 0o644)
}

// SecondSystemID puts another .runner_system_id on the disk, as a second
// config directory has it.
func (h *Host) SecondSystemID(dir, id string) {
	h.files.Put(dir+"/.runner_system_id", id, h.o.RunnerUser, 0o600)
	h.files.Put(dir+"/config.toml", configText(h.o), h.o.RunnerUser, 0o600)
}

// SecondUnit installs another unit that runs a gitlab-runner, and starts it.
func (h *Host) SecondUnit(name string) {
	h.files.Put("/etc/systemd/system/"+name, fedoraUnit(h.o), memfs.Root, 0o644)
	if m := h.Systemd(); m != nil {
		m.Start(name)
	}
}

// RemoveUnit takes the runner's unit file away; a running one must be stopped
// by the caller before.
func (h *Host) RemoveUnit() { h.files.RemoveAll(h.o.UnitPath) }
