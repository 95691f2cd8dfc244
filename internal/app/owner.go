package app

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// owner yields the id that this journal's drop-ins carry on the hosts. It is
// made once and lies beside the journal, so that another Sluice with a journal
// of its own is told from this one after any restart.
func owner(database string) (string, error) {
	path := database + ".owner"
	text, err := os.ReadFile(path) //nolint:gosec // beside the configured journal
	if err == nil && strings.TrimSpace(string(text)) != "" {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fleet.Errorf(fleet.CodeForbidden, "the journal's owner file cannot be read: %w", err).WithHint("check the mode of %s", path)
	}
	raw := make([]byte, 6)
	if _, err := rand.Read(raw); err != nil {
		return "", fleet.Errorf(fleet.CodeInternal, "no randomness for an id: %w", err)
	}
	id := "sluice-" + hex.EncodeToString(raw)
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fleet.Errorf(fleet.CodeUnavailable, "the journal's owner file cannot be written: %w", err).WithHint("check the disk and the mode of the directory of %s", path)
	}
	return id, nil
}
