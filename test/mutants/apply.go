package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Apply yields the files that the mutant changes, as they become, by their
// names from the top of the tree. Errors: the text that was not found, or was
// found more than once, and where.
func (m *Mutant) Apply(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, edit := range m.Edits {
		now, ok := changed[edit.File]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(edit.File)))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			now = string(raw)
		}
		if n := strings.Count(now, edit.Old); n != 1 {
			return nil, m.misfit(edit, now, n)
		}
		changed[edit.File] = strings.Replace(now, edit.Old, edit.New, 1)
	}
	return changed, nil
}

// misfit says what was not found, down to the line.
func (m *Mutant) misfit(edit Edit, now string, n int) error {
	if n > 1 {
		return m.wrong("does not fit: %s has this text %d times; take more of it along:\n%s", edit.File, n, edit.Old)
	}
	for line := range strings.Lines(edit.Old) {
		if line = strings.TrimSuffix(line, "\n"); !strings.Contains(now, line) {
			return m.wrong("does not fit any more: %s has no line %q; mend %s%s, or remove it if that cannot break any more",
				edit.File, line, m.Name, suffix)
		}
	}
	return m.wrong("does not fit any more: %s has these lines, but not one after another:\n%s", edit.File, edit.Old)
}

// Overlay applies the mutant to the tree at root and writes what `go test
// -overlay` takes into dir. Errors: as of Apply, or of writing.
func (m *Mutant) Overlay(root, dir string) (file string, err error) {
	changed, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, content := range changed {
		wrong := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(wrong, []byte(content), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = wrong
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, raw, 0o600)
}
