package metrics

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

//go:generate go test -run TestTheReferencePageIsInStep -update .

var update = flag.Bool("update", false, "write the generated page anew")

const page = "../../docs/reference/metrics.md"

func reference(t *testing.T) string {
	t.Helper()
	_, registry := setup(t, State{}, nil)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Metrics\n\nServed at `/metrics`. Generated from the registry. Labels are fleets and small closed sets, never a VM or a job; every series is there at 0 from the start.\n\n")
	b.WriteString("| series | type | labels | says |\n| --- | --- | --- | --- |\n")
	for _, family := range families {
		labels := map[string]map[string]bool{}
		for _, series := range family.GetMetric() {
			for _, pair := range series.GetLabel() {
				if labels[pair.GetName()] == nil {
					labels[pair.GetName()] = map[string]bool{}
				}
				labels[pair.GetName()][pair.GetValue()] = true
			}
		}
		var words []string
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			word := "`" + name + "`"
			if closed := slices.Sorted(maps.Keys(labels[name])); len(closed) > 2 && name != "code" && name != "call" {
				word += " (" + strings.Join(closed, ", ") + ")"
			}
			words = append(words, word)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", family.GetName(), strings.ToLower(family.GetType().String()), strings.Join(words, ", "), family.GetHelp())
	}
	return b.String()
}

func TestTheReferencePageIsInStep(t *testing.T) {
	want := reference(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of step: run go test ./internal/metrics -update", page)
	}
}
