package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// systemID yields this host's name at GitLab: what the file beside config.toml says, or
// else the keyed hash of the machine id that gitlab-runner makes, written there. A host keeps it over restarts and
// reboots; one made anew from an image without a machine id gets a new one.
func systemID(file, machineIDFile string) (string, error) {
	if known, err := os.ReadFile(file); err == nil && len(known) > 0 {
		return strings.TrimSpace(string(known)), nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	machine, err := os.ReadFile(machineIDFile)
	if err != nil {
		return "", err
	}
	sum := hmac.New(sha256.New, []byte(strings.TrimSpace(string(machine))))
	_, _ = sum.Write([]byte("gitlab-runner"))
	id := "s_" + hex.EncodeToString(sum.Sum(nil))[:12]
	return id, os.WriteFile(file, []byte(id), 0o600)
}
