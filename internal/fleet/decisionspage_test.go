package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const decisionsIntro = `<!-- Generated from internal/fleet/decide.go by "make generate". Do not edit. -->
# Decisions of a drain

At every look, host, GitLab and provider are read, and the first row of this table that matches the readings decides. ` + "`sluice op show`" + `
prints the row with each decision, and what it will decide when the next deadline passes if nothing else changes.
The policies named here are in [config.md](config.md); what each does, in [operating.md](../operating.md).

| row | when: then |
| --- | --- |
`

func decisionsPage() string {
	var page strings.Builder
	page.WriteString(decisionsIntro)
	for _, r := range table {
		fmt.Fprintf(&page, "| %d | %s |\n", r.number, r.says)
	}
	return page.String()
}

func TestDecisionsPageIsInStep(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference", "decisions.md")
	want := decisionsPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run make generate", err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table says: run make generate", path)
	}
}

// The rule that is told is that of the row that decided; row 1 has two.
func TestADecisionNamesItsRule(t *testing.T) {
	for _, r := range table[1:] {
		if got := (Decision{Row: r.number}).Rule(); got != r.says {
			t.Errorf("row %d: %q, want %q", r.number, got, r.says)
		}
	}
	if got := (Decision{Row: 1, Action: ActConflict}).Rule(); got != table[0].says {
		t.Errorf("a conflict: %q, want %q", got, table[0].says)
	}
	if got := (Decision{}).Rule(); got != "" {
		t.Errorf("no row: %q", got)
	}
}
