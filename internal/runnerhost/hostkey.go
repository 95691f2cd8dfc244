package runnerhost

import (
	"context"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// HostKeyPolicy says where the key that a host must show comes from.
type HostKeyPolicy string

// The policies. HostKeysProvider pins what the provider reports of the
// incarnation; HostKeysTOFU trusts the first key that an incarnation shows, and
// only that one from then on. HostKeysOff takes any key each time: whoever has
// the address is obeyed and told, so it is never a default.
const (
	HostKeysProvider HostKeyPolicy = "provider"
	HostKeysTOFU     HostKeyPolicy = "tofu"
	HostKeysOff      HostKeyPolicy = "off"
)

// KeyStore keeps the keys that were trusted at first use. A key belongs to one
// instance: a recreated VM begins anew.
type KeyStore interface {
	// Known yields the keys trusted for this instance of the VM, in
	// authorized_keys format; none if it was never reached.
	Known(ctx context.Context, ref fleet.Ref, instance string) ([]string, error)
	// Trust stores a key for this instance. It is durable when the call returns.
	Trust(ctx context.Context, ref fleet.Ref, instance, key string) error
}

// keyCheck is one handshake's check of the host key.
type keyCheck struct {
	target  engine.Target
	policy  HostKeyPolicy
	pinned  []ssh.PublicKey // none: the first use
	shown   ssh.PublicKey   // what the host showed
	refusal error
}

// newKeyCheck finds out which keys the target may show. Errors: CodeInvalid,
// CodeUnavailable, and what the key store says.
func newKeyCheck(ctx context.Context, policy HostKeyPolicy, store KeyStore, t engine.Target) (*keyCheck, error) {
	lines := t.HostKeys
	switch policy {
	case HostKeysOff:
		return &keyCheck{target: t, policy: policy}, nil
	case HostKeysTOFU:
		if t.Instance == "" {
			return nil, fleet.Errorf(fleet.CodeInvalid, "%s: the provider names no instance, and a host key is trusted for one instance only", t.Ref)
		}
		known, err := store.Known(ctx, t.Ref, t.Instance)
		if err != nil {
			return nil, fleet.Errorf(fleet.CodeOf(err), "%s: the trusted host keys cannot be read: %w", t.Ref, err)
		}
		lines = known
	case HostKeysProvider:
	}
	check := &keyCheck{target: t, policy: policy}
	for _, line := range lines {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fleet.Errorf(fleet.CodeInvalid, "%s: a host key of instance %s cannot be read: %q: %w", t.Ref, t.Instance, line, err).
				WithHint("a host key is written as in authorized_keys: ssh-ed25519 AAAA…")
		}
		check.pinned = append(check.pinned, key)
	}
	if policy == HostKeysProvider && len(check.pinned) == 0 {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "%s: the provider reports no host key for instance %s yet", t.Ref, t.Instance).
			WithHint("let the provider report it (host_keys of an instance), or set host.host_keys of the fleet to tofu")
	}
	return check, nil
}

// callback is an ssh.HostKeyCallback.
func (c *keyCheck) callback(_ string, _ net.Addr, shown ssh.PublicKey) error {
	c.shown = shown
	if len(c.pinned) == 0 {
		return nil
	}
	for _, key := range c.pinned {
		if key.Type() == shown.Type() && string(key.Marshal()) == string(shown.Marshal()) {
			return nil
		}
	}
	c.refusal = c.wrongKey("shows " + describeKey(shown))
	return c.refusal
}

// wrongKey says what was shown, what was expected, and what to do.
func (c *keyCheck) wrongKey(shown string) error {
	want := make([]string, 0, len(c.pinned))
	for _, key := range c.pinned {
		want = append(want, describeKey(key))
	}
	origin := "that the provider reports"
	if c.policy == HostKeysTOFU {
		origin = "that was trusted at first use"
	}
	return fleet.Errorf(fleet.CodeConflict, "%s: the host at %s %s, not the key %s for instance %s: %s",
		c.target.Ref, c.target.Address, shown, origin, c.target.Instance, strings.Join(want, ", ")).
		WithHint("another machine has this address, or the VM was rebuilt or its keys were changed behind Sluice's back; " +
			"compare with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the VM's console; a recreate by Sluice begins with a new key")
}

// algorithms restricts the handshake to the types of the pinned keys. Without
// it a host that also has a certificate, or another type, would show that one
// first, and the pin would seem broken (facts/providers.md section 7).
func (c *keyCheck) algorithms() []string {
	if len(c.pinned) == 0 {
		return []string{
			ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
			ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
		}
	}
	var names []string
	for _, key := range c.pinned {
		if key.Type() == ssh.KeyAlgoRSA { // the type of the key, not of a signature
			names = append(names, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		names = append(names, key.Type())
	}
	return names
}

// remember stores the key of a first use, once the login has succeeded.
func (c *keyCheck) remember(ctx context.Context, store KeyStore) error {
	if len(c.pinned) > 0 || c.policy == HostKeysOff {
		return nil
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(c.shown)))
	if err := store.Trust(ctx, c.target.Ref, c.target.Instance, line); err != nil {
		return fleet.Errorf(fleet.CodeOf(err), "%s: the host key cannot be stored: %w", c.target.Ref, err)
	}
	return nil
}

func describeKey(key ssh.PublicKey) string {
	return key.Type() + " " + ssh.FingerprintSHA256(key)
}
