package machines

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fedora and ops are the guests' users, as the golden tree numbers them.
const (
	fedora = 1000
	ops    = 1001
	sluice = 1002
)

// What ops may do always, and fedora in a world without a sudoers file.
const (
	opsMayAll    = "ops ALL=(ALL:ALL) NOPASSWD: ALL\n"
	fedoraMayAll = "fedora ALL=(ALL:ALL) NOPASSWD: ALL\n"
)

// seed writes what makes a snapshot this machine: what a cloud would hand over with its
// user data.
func (w *World) seed(m *Machine, spec Spec) error {
	root := m.root(w)
	sudoers := fedoraMayAll
	if w.Settings.Sudoers != "" {
		content, err := os.ReadFile(w.Settings.Sudoers)
		if err != nil {
			return err
		}
		sudoers = string(content)
	}
	config := strings.ReplaceAll(w.Settings.RunnerConfig, "{{name}}", m.Name)
	files := []seedFile{
		{"etc/hostname", m.Name + "\n", 0o644, 0},
		{"etc/e2e-image", spec.Image + "\n", 0o644, 0},
		{"etc/sudoers.d/ops", opsMayAll, 0o440, 0},
		{"etc/sudoers.d/sluice", forBothLogins(sudoers), 0o440, 0},
		{"etc/gitlab-runner/config.toml", config, 0o600, fedora},
		{"home/fedora/.ssh/authorized_keys", w.Settings.AuthorizedKey, 0o600, fedora},
		{"home/sluice/.ssh/authorized_keys", w.Settings.AuthorizedKey, 0o600, sluice},
		{"home/ops/.ssh/authorized_keys", w.Settings.AuthorizedKey, 0o600, ops},
	}
	for path, content := range spec.Files {
		files = append(files, seedFile{strings.TrimPrefix(path, "/"), content, 0o644, 0})
	}
	for _, file := range files {
		if err := file.write(root); err != nil {
			return err
		}
	}
	if w.Settings.CLI != "" {
		if err := copyProgram(w.Settings.CLI, filepath.Join(root, "usr/local/bin/sluice")); err != nil {
			return err
		}
	}
	return copyProgram(w.Settings.Runner, filepath.Join(root, "usr/local/bin/gitlab-runner"))
}

// forBothLogins gives the user sluice, who is not the runner's, what fedora may do.
func forBothLogins(sudoers string) string {
	var rules strings.Builder
	for line := range strings.Lines(sudoers) {
		if rest, ok := strings.CutPrefix(line, "fedora ALL"); ok {
			rules.WriteString("sluice ALL" + rest)
		}
	}
	return sudoers + rules.String()
}

type seedFile struct {
	path    string
	content string
	mode    fs.FileMode
	owner   int
}

func (f seedFile) write(root string) error {
	target := filepath.Join(root, f.path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // directories of a guest's file system
		return err
	}
	if err := os.WriteFile(target, []byte(f.content), f.mode); err != nil {
		return err
	}
	return os.Chown(target, f.owner, f.owner)
}

func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755) //nolint:gosec // a program in a guest's file system
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return err
	}
	return target.Close()
}
