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
