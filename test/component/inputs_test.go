package component_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/test/component"
)

// inputsTable is the page's table: what is needed first, then the rest.
func inputsTable(t *testing.T, inputs map[string]component.Input) string {
	t.Helper()
	names := slices.SortedFunc(maps.Keys(inputs), func(a, b string) int {
		if inputs[a].Mandatory != inputs[b].Mandatory {
			if inputs[a].Mandatory {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	b.WriteString("| input | default | is |\n| --- | --- | --- |\n")
	for _, name := range names {
		in := inputs[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, fallback(t, in), in.Description)
	}
	return b.String()
}

// fallback is an input's default as a reader wants to see it.
func fallback(t *testing.T, in component.Input) string {
	t.Helper()
	if in.Mandatory {
		return "needed"
	}
	if text, ok := in.Default.(string); ok {
		if text == "" {
			return "empty"
		}
		return "`" + text + "`"
	}
	text, err := json.Marshal(in.Default)
	if err != nil {
		t.Fatal(err)
	}
	return "`" + string(text) + "`"
}

func TestThePageListsEveryInputWithItsDefault(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/component.md"), "\n## Inputs\n\n")
	found, _, _ := strings.Cut(section, "\n\n")
	if want := strings.TrimRight(inputsTable(t, template(t, "recreate").Inputs), "\n"); found != want {
		t.Errorf("docs/component.md, section Inputs, has\n%s\nbut templates/recreate.yml makes\n%s", found, want)
	}
}
