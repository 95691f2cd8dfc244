package runnerhost

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func line(key ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(key)) }

// case T89: the address is used again, the key is another.
func TestAnotherHostKeyIsRefusedWithBothFingerprints(t *testing.T) {
	s := newSSHD(t)
	target := s.target()
	other := newSigner(t).PublicKey()
	target.HostKeys = []string{line(other)}
	_, err := s.hosts(nil).Look(t.Context(), target)
	mustContain(t, err, fleet.CodeConflict, "f/vm-1", "i-1", fingerprint(other), fingerprint(s.keys["ed25519"]), "ssh-keygen -lf")
}

func TestAPinHoldsWhateverElseTheHostCouldShow(t *testing.T) {
	s := newSSHD(t)
	for name, key := range s.keys {
		target := s.target()
		target.Instance, target.HostKeys = name, []string{line(key)}
		if _, err := s.hosts(nil).Look(t.Context(), target); err != nil {
			t.Errorf("pinned to the %s key: %v", name, err)
		}
	}
}

func TestAHostCertificateDoesNotBreakAPin(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		missing(t, "ssh-keygen is not installed")
	}
	s := newSSHD(t)
	s.hostKey("ca", newKey(t))
	if out, err := exec.CommandContext(t.Context(), keygen, "-q", "-s", s.path("ca"), "-I", "x", "-h", "-n", "vm-1", s.path("ed25519.pub")).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	s.configure("HostCertificate " + s.path("ed25519-cert.pub"))
	delete(s.keys, "ca")
	if _, err := s.hosts(nil).Look(t.Context(), s.target()); err != nil {
		t.Error(err)
	}
}

func TestAHostWithoutTheTypeOfThePinIsAnotherHost(t *testing.T) {
	s := newSSHD(t)
	s.configure("HostKeyAlgorithms rsa-sha2-512")
	_, err := s.hosts(nil).Look(t.Context(), s.target())
	mustContain(t, err, fleet.CodeConflict, "f/vm-1", fingerprint(s.keys["ed25519"]))
}

func TestAKeyIsTrustedAtFirstUseForOneInstanceOnly(t *testing.T) {
	keys := &memoryKeys{}
	tofu := func(o *Options) { o.HostKeys, o.Keys = HostKeysTOFU, keys }
	first, second := newSSHD(t), newSSHD(t)
	target := first.target()
	target.HostKeys = nil
	if _, err := first.hosts(tofu).Look(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if got := keys.keys["f/vm-1 i-1"]; len(got) != 1 {
		t.Fatalf("trusted: %q", got)
	}
	target.Address = second.address // the same instance, another machine
	_, err := second.hosts(tofu).Look(t.Context(), target)
	mustContain(t, err, fleet.CodeConflict, "i-1", "trusted at first use")
	target.Instance = "i-2" // a recreated VM begins anew
	if _, err := second.hosts(tofu).Look(t.Context(), target); err != nil {
		t.Error(err)
	}
	target.Instance = ""
	_, err = second.hosts(tofu).Look(t.Context(), target)
	mustContain(t, err, fleet.CodeInvalid, "no instance")
}

// host_keys: off is by name only, and leaves nothing behind that a later tofu
// would believe.
func TestWithHostKeysOffAnyKeyIsTakenAndNoneIsRemembered(t *testing.T) {
	keys := &memoryKeys{}
	off := func(o *Options) { o.HostKeys, o.Keys = HostKeysOff, keys }
	first, second := newSSHD(t), newSSHD(t)
	target := first.target()
	if _, err := first.hosts(off).Look(t.Context(), target); err != nil {
		t.Error(err)
	}
	target.Address = second.address // reported with the first one's key
	if _, err := second.hosts(off).Look(t.Context(), target); err != nil {
		t.Error(err)
	}
	if len(keys.keys) != 0 {
		t.Errorf("trusted: %v", keys.keys)
	}
}

func TestAKeyIsNotTrustedBeforeTheLoginSucceeded(t *testing.T) {
	keys := &memoryKeys{}
	s := newSSHD(t)
	h := s.hosts(func(o *Options) {
		o.HostKeys, o.Keys, o.Signers = HostKeysTOFU, keys, []ssh.Signer{newSigner(t)}
	})
	_, err := h.Look(t.Context(), s.target())
	mustContain(t, err, fleet.CodeForbidden, "f/vm-1", "refuses the login of", "authorized_keys")
	if len(keys.keys) != 0 {
		t.Errorf("trusted: %v", keys.keys)
	}
}

func TestAProviderThatReportsNoKeyIsWaitedFor(t *testing.T) {
	s := newSSHD(t)
	target := s.target()
	target.HostKeys = nil
	_, err := s.hosts(nil).Look(t.Context(), target)
	mustContain(t, err, fleet.CodeUnavailable, "no host key for instance i-1", "tofu")
	target.HostKeys = []string{"AAAA"}
	_, err = s.hosts(nil).Look(t.Context(), target)
	mustContain(t, err, fleet.CodeInvalid, "authorized_keys")
}

func TestAKeyFileThatCannotBeUsedIsNamed(t *testing.T) {
	dir := t.TempDir()
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		missing(t, "ssh-keygen is not installed")
	}
	for name, passphrase := range map[string]string{"good": "", "locked": "secret"} {
		if out, err := exec.CommandContext(t.Context(), keygen, "-q", "-t", "ed25519", "-N", passphrase, "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "junk"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSigner(filepath.Join(dir, "good")); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"missing": "does not exist", "locked": "has a passphrase", "good.pub": "is a public key", "junk": "is no private key",
	} {
		_, err := LoadSigner(filepath.Join(dir, name))
		mustContain(t, err, fleet.CodeInvalid, filepath.Join(dir, name), want)
	}
}
