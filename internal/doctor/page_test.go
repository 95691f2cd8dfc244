package doctor

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

//go:generate go test -run TestTheFindingsPageIsInStep -update .

var update = flag.Bool("update", false, "write the generated page anew")

const page = "../../docs/reference/findings.md"

func findingsPage() string {
	var b strings.Builder
	b.WriteString("# Findings of `sluice doctor`\n\nGenerated from the catalogue of findings. `sluice doctor --output json` gives each its `code`, which never changes.\n\n")
	b.WriteString("An *error* stops an operation before anything is touched, or makes it fail; with a *warning* it goes on, with less proof.\n" +
		"Where a finding knows more of its case than this page, it says so instead. Exit status: 0 clean, 1 findings.\n\n")
	b.WriteString("| code | severity | what was found | what it would cause | how to mend it |\n| --- | --- | --- | --- | --- |\n")
	kinds := Catalog()
	slices.SortFunc(kinds, func(a, b Kind) int { return strings.Compare(string(a.Code), string(b.Code)) })
	for _, k := range kinds {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Code, k.Severity, k.Is, k.Would, k.Mend)
	}
	return b.String()
}

func TestTheFindingsPageIsInStep(t *testing.T) {
	want := findingsPage()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // a page of the documentation
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != want {
		t.Errorf("%s is out of step: run go test ./internal/doctor -update (%v)", page, err)
	}
}

func TestEveryKindSaysWhatItWouldCauseAndHowToMendIt(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	checks := []string{"reach", "units", "sudo", "identity", "gitlab", "token", "provider", "webhook"}
	seen := map[Code]bool{}
	for _, k := range Catalog() {
		if seen[k.Code] || !word.MatchString(string(k.Code)) {
			t.Errorf("%s: the code is there twice or is no word", k.Code)
		}
		seen[k.Code] = true
		if k.Is == "" || k.Would == "" || k.Mend == "" || strings.Contains(k.Is+k.Would+k.Mend, "|") {
			t.Errorf("%+v", k)
		}
		if !slices.Contains(checks, k.Check) || k.Severity != SeverityError && k.Severity != SeverityWarning {
			t.Errorf("%+v", k)
		}
	}
	for _, fault := range fleet.Faults() {
		if !seen[Code(fault)] {
			t.Errorf("%s is not in the catalogue", fault)
		}
	}
}
