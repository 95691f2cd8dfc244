package fleet

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated pages anew")

const phasesIntro = `<!-- Generated from internal/fleet/phase.go by "make generate". Do not edit. -->
# Phases

Where an operation goes. One function, ` + "`fleet.Transition`" + `, makes every move, and no other code sets a phase.
A kind with no entry in a line never makes that move; anything that is not listed is refused.
What each phase waits for, and what a person can do in it, is in [operating.md](../operating.md).

`

func phasesPage() string {
	var page strings.Builder
	page.WriteString(phasesIntro)
	page.WriteString("| from | event |")
	for _, kind := range Kinds() {
		fmt.Fprintf(&page, " %s |", kind)
	}
	page.WriteString(" only |\n| --- | --- |" + strings.Repeat(" --- |", len(Kinds())+1) + "\n")
	for _, arrow := range PhaseTable() {
		fmt.Fprintf(&page, "| %s | `%s` |", arrow.From, arrow.Event)
		for _, kind := range Kinds() {
			page.WriteString(cell(string(arrow.To[kind])))
		}
		page.WriteString(cell(string(arrow.Guard)) + "\n")
	}
	return page.String()
}

func cell(text string) string {
	if text == "" {
		return " |"
	}
	return " " + text + " |"
}

func TestPhasesPageIsInStep(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference", "phases.md")
	want := phasesPage()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run make generate", err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the phase table says: run make generate", path)
	}
}
