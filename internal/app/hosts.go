package app

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/runnerhost"
)

// hosts makes the way to a fleet's hosts.
func (h *hands) hosts(name string, c *config.Fleet, spec fleet.Spec) (engine.Hosts, error) {
	signer, err := signer(c.Host.Key)
	if err != nil {
		return nil, err
	}
	hosts, err := runnerhost.New(runnerhost.Options{
		Settings: spec.Host, Signers: []ssh.Signer{signer}, HostKeys: runnerhost.HostKeyPolicy(c.Host.HostKeys),
		Keys: &h.trust, Dial: dial(c.Host.Port), Clock: clock{}, Logger: h.log.With("fleet", name),
	})
	if err != nil {
		return nil, err
	}
	h.closers = append(h.closers, hosts.Close)
	return hosts, nil
}

// signer reads the SSH key. Errors: CodeInvalid, with the key's place in the
// configuration and what is wrong; never the key.
func signer(key *config.Secret) (ssh.Signer, error) {
	text, err := key.Bytes()
	if err != nil {
		return nil, err
	}
	if key.File != "" { // it says more about what is wrong with a file
		signer, err := runnerhost.LoadSigner(key.File)
		if err != nil {
			return nil, fleet.Errorf(fleet.CodeInvalid, "%s: %w", key.Key(), err)
		}
		return signer, nil
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "%s is no private SSH key: %w", key.Key(), err).
			WithHint("ssh-keygen -t ed25519 makes one; it must have no passphrase")
	}
	return signer, nil
}

// dial connects by TCP; port is for addresses that name none.
func dial(port int) runnerhost.Dialer {
	return func(ctx context.Context, t engine.Target) (net.Conn, error) {
		address := t.Address
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(strings.Trim(address, "[]"), strconv.Itoa(port))
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
}

// trustStore keeps host keys trusted at first use: in the journal, or, where
// that may only be read, for as long as this process lives.
type trustStore struct {
	journal  journal
	readOnly bool
	mu       sync.Mutex
	seen     map[string]string
}

// Known implements runnerhost.KeyStore.
func (t *trustStore) Known(ctx context.Context, ref fleet.Ref, instance string) ([]string, error) {
	known, err := t.journal.Known(ctx, ref, instance)
	if err != nil || len(known) > 0 || !t.readOnly {
		return known, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if key, ok := t.seen[ref.String()+" "+instance]; ok {
		return []string{key}, nil
	}
	return nil, nil
}

// Trust implements runnerhost.KeyStore.
func (t *trustStore) Trust(ctx context.Context, ref fleet.Ref, instance, key string) error {
	if !t.readOnly {
		return t.journal.Trust(ctx, ref, instance, []string{key})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[string]string{}
	}
	t.seen[ref.String()+" "+instance] = key
	return nil
}
