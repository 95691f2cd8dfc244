package access

import (
	"fmt"
	"path"
	"strings"
)

// Pattern is what a claim or a VM's name must be: this very text, or, as a
// glob, whatever path.Match takes: * stops at a slash.
type Pattern struct {
	Text string
	Glob bool
}

// Matches compares, case included.
func (p Pattern) Matches(text string) bool {
	if !p.Glob {
		return p.Text == text
	}
	ok, err := path.Match(p.Text, text)
	return ok && err == nil
}

// String renders it as the configuration has it.
func (p Pattern) String() string {
	if p.Glob {
		return fmt.Sprintf("{glob: %q}", p.Text)
	}
	return fmt.Sprintf("%q", p.Text)
}

// Check says what is wrong with a pattern; nil = nothing.
func (p Pattern) Check() error {
	if !p.Glob {
		return nil
	}
	if _, err := path.Match(p.Text, ""); err != nil {
		return fmt.Errorf("%q is no glob: %w", p.Text, err)
	}
	return nil
}

// Open says whether a glob leaves its beginning to the caller: then it says
// nothing of whom it lets in.
func (p Pattern) Open() bool { return p.Glob && strings.IndexAny(p.Text, `*?[\`) == 0 }

func patterns(list []Pattern) string {
	words := make([]string, len(list))
	for i, p := range list {
		words[i] = p.String()
	}
	return strings.Join(words, " or ")
}

func anyMatches(list []Pattern, texts ...string) bool {
	for _, p := range list {
		for _, text := range texts {
			if p.Matches(text) {
				return true
			}
		}
	}
	return false
}
