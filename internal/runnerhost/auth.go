package runnerhost

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// LoadSigner reads an unencrypted private key from a file, in any format that
// ssh-keygen writes. Errors: CodeInvalid with the file's name, never its text.
func LoadSigner(file string) (ssh.Signer, error) {
	text, err := os.ReadFile(file) // #nosec G304 -- the operator names the file
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fleet.Errorf(fleet.CodeInvalid, "the SSH key %s does not exist", file).WithHint("set host.key of the fleet to the login's private key")
	case errors.Is(err, fs.ErrPermission):
		return nil, fleet.Errorf(fleet.CodeInvalid, "the SSH key %s may not be read by this user", file).WithHint("give this user the file, mode 0600")
	case err != nil:
		return nil, fleet.Errorf(fleet.CodeInvalid, "the SSH key %s cannot be read: %w", file, err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, fleet.Errorf(fleet.CodeInvalid, "the SSH key %s has a passphrase, and nobody is there to type it", file).
			WithHint("give Sluice a key of its own without one: ssh-keygen -t ed25519 -N '' -f %s", file+"-sluice")
	}
	if err != nil {
		if _, _, _, _, public := ssh.ParseAuthorizedKey(text); public == nil {
			return nil, fleet.Errorf(fleet.CodeInvalid, "the SSH key %s is a public key", file).WithHint("the private one is meant, usually the name without .pub")
		}
		return nil, fleet.Errorf(fleet.CodeInvalid, "the SSH key %s is no private key: %w", file, err).WithHint("ssh-keygen -t ed25519 makes one")
	}
	return signer, nil
}
