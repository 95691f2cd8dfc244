package runnerhost

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Dialer opens a byte stream to a host's SSH server: TCP, or a tunnel.
type Dialer func(ctx context.Context, t engine.Target) (net.Conn, error)

// Options say how a fleet's hosts are reached. Settings, Signers and Clock are
// required, and Keys with HostKeysTOFU; the zero value of the rest is a default.
type Options struct {
	Settings fleet.HostSettings
	Signers  []ssh.Signer
	HostKeys HostKeyPolicy // default HostKeysProvider
	Keys     KeyStore
	Dial     Dialer // default: TCP to Target.Address, port 22 unless it names one
	Clock    engine.Clock
	Logger   *slog.Logger
	Random   io.Reader // marks answers; default crypto/rand
	Limits   Limits
}

// Limits bound what a host may take. Zero fields have defaults.
type Limits struct {
	Connect        time.Duration // from dialing to logged in; 15 s
	Command        time.Duration // above what a script gives itself: 5 s
	KeepaliveEvery time.Duration // between questions on an idle connection; 15 s
	KeepaliveReply time.Duration // then the connection counts as dead; 10 s
	Stdout         int           // bytes of an answer; 1 MiB
	Stderr         int           // bytes that are kept; 64 KiB
	Sessions       int           // at once per host; 6 (sshd allows 10)
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&l.Connect, 15*time.Second)
	set(&l.Command, 5*time.Second)
	set(&l.KeepaliveEvery, 15*time.Second)
	set(&l.KeepaliveReply, 10*time.Second)
	for _, size := range []struct {
		field *int
		value int
	}{{&l.Stdout, 1 << 20}, {&l.Stderr, 64 << 10}, {&l.Sessions, 6}} {
		if *size.field <= 0 {
			*size.field = size.value
		}
	}
	return l
}

// Hosts reaches the hosts of one fleet, with one kept connection for each
// incarnation. It is an engine.Hosts. Close it when done.
type Hosts struct {
	o   Options
	log *slog.Logger

	ending context.Context // ends with Close
	end    context.CancelFunc

	mu     sync.Mutex
	closed bool
	links  map[incarnation]*slot
	wait   sync.WaitGroup // calls in progress and goroutines of ours
}

// incarnation is whose a kept connection is.
type incarnation struct {
	fleet.Ref
	instance string
}

// New checks the options. It connects nowhere yet. Errors: CodeInvalid.
func New(o Options) (*Hosts, error) {
	settings, err := checkSettings(o.Settings)
	if err != nil {
		return nil, err
	}
	o.Settings = settings
	o.Limits = o.Limits.withDefaults()
	if o.HostKeys == "" {
		o.HostKeys = HostKeysProvider
	}
	switch {
	case o.HostKeys != HostKeysProvider && o.HostKeys != HostKeysTOFU && o.HostKeys != HostKeysOff:
		return nil, fleet.Errorf(fleet.CodeInvalid, "host.host_keys %q is not known", o.HostKeys).WithHint("use provider or tofu; off takes any key")
	case o.HostKeys == HostKeysTOFU && o.Keys == nil:
		return nil, fleet.Errorf(fleet.CodeInternal, "host keys are to be trusted at first use, but there is no store for them")
	case len(o.Signers) == 0:
		return nil, fleet.Errorf(fleet.CodeInvalid, "there is no SSH key to log in with").WithHint("set host.key of the fleet to a private key file")
	case o.Clock == nil:
		return nil, fleet.Errorf(fleet.CodeInternal, "hosts need a clock")
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Dial == nil {
		o.Dial = dialTCP
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ending, end := context.WithCancel(context.Background())
	return &Hosts{o: o, log: log, ending: ending, end: end, links: map[incarnation]*slot{}}, nil
}

// enter begins a call: it ends early with Close, which waits for it.
func (h *Hosts) enter(ctx context.Context, t engine.Target) (context.Context, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, fleet.Errorf(fleet.CodeCanceled, "%s: Sluice is ending", t.Ref)
	}
	h.wait.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.ending, cancel)
	return ctx, func() { stop(); cancel(); h.wait.Done() }, nil
}

// Forget closes the connection to an incarnation that is gone.
func (h *Hosts) Forget(t engine.Target) {
	key := incarnation{t.Ref, t.Instance}
	h.mu.Lock()
	s := h.links[key]
	delete(h.links, key)
	h.mu.Unlock()
	if s != nil {
		s.close()
	}
}

// Close closes every connection and waits until nothing of ours runs. What a
// host has begun goes on there, within its own time limit.
func (h *Hosts) Close() {
	h.mu.Lock()
	h.closed = true
	links := h.links
	h.links = map[incarnation]*slot{}
	h.mu.Unlock()
	h.end()
	for _, s := range links {
		s.close()
	}
	h.wait.Wait()
}

// dialTCP connects directly.
func dialTCP(ctx context.Context, t engine.Target) (net.Conn, error) {
	address := t.Address
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), "22")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// nonce marks the answer to one command: nothing that a host prints by itself
// can be taken for it.
func (h *Hosts) nonce() (string, error) {
	raw := make([]byte, 12)
	if _, err := io.ReadFull(h.o.Random, raw); err != nil {
		return "", fleet.Errorf(fleet.CodeInternal, "no randomness for a command: %w", err)
	}
	return hex.EncodeToString(raw), nil
}
