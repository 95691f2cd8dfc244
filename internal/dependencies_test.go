package internal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Rule 11 of the house: a dependency earns its place, and its reason is on
// the page.
func TestEveryDirectDependencyHasItsReason(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/design/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := regexp.MustCompile(`(?m)^(?:require )?\t?([a-z0-9.-]+\.[a-z]+/\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1)
	for _, match := range direct {
		name := match[1]
		if strings.HasPrefix(name, "github.com/riverqueue/river/") {
			continue // parts of River
		}
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/design/dependencies.md does not say why %s", name)
		}
	}
}
