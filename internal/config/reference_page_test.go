package config

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// line is one key of the reference page.
type line struct{ key, kind, fallback, doc string }

// rows walks the schema.
func rows(t *testing.T) []line {
	t.Helper()
	registry, root := schemaOf()
	return walk(registry, root, "")
}

func walk(registry huma.Registry, schema *huma.Schema, path string) []line {
	var list []line
	for _, key := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[key]
		target := resolve(registry, field)
		at := strings.TrimPrefix(path+"."+key, ".")
		row := line{key: at, kind: kind(registry, target), doc: field.Description}
		if field.Default != nil {
			row.fallback = fmt.Sprint(reflect.Indirect(reflect.ValueOf(field.Default)))
		}
		if row.fallback == "" && slices.Contains(schema.Required, key) {
			row.kind += ", required"
		}
		list = append(list, row)
		switch {
		case target.Title == secretTitle:
		case len(target.Properties) > 0:
			list = append(list, walk(registry, target, at)...)
		case target.Items != nil && resolve(registry, target.Items).Title != secretTitle:
			list = append(list, walk(registry, resolve(registry, target.Items), at+"[]")...)
		default:
			if extra, ok := target.AdditionalProperties.(*huma.Schema); ok && len(resolve(registry, extra).Properties) > 0 {
				list = append(list, walk(registry, resolve(registry, extra), at+".FLEET")...)
			}
		}
	}
	return list
}

func kind(registry huma.Registry, s *huma.Schema) string {
	switch {
	case s.Title != "":
		return s.Title
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			words[i] = fmt.Sprint(e)
		}
		return strings.Join(words, ", ")
	case s.Type == huma.TypeArray:
		return "list of " + kind(registry, resolve(registry, s.Items))
	case s.Type == huma.TypeObject:
		return "section"
	case s.Type == "":
		return "anything"
	}
	return s.Type
}

func reference(t *testing.T) string {
	t.Helper()
	example, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Configuration\n\nGenerated from the schema; `sluice config schema` prints it for editors, `sluice config validate` checks a file.\n\n")
	b.WriteString("The file is the one named with `--config`, else `$SLUICE_CONFIG`, else the first of `sluice.yaml`, `$XDG_CONFIG_HOME/sluice/sluice.yaml`, `/etc/sluice/sluice.yaml`.\n\n")
	b.WriteString("A *secret* is never written into the file: `{file: PATH}`, `{env: NAME}` or `{credential: NAME}` (systemd, LoadCredential=) says where it is. A *duration* has its unit: `45s`, `10m`, `1h30m`.\n\n")
	b.WriteString("```yaml\n" + string(example) + "```\n\n| key | is | default | says |\n| --- | --- | --- | --- |\n")
	for _, row := range rows(t) {
		fallback := row.fallback
		if fallback != "" {
			fallback = "`" + fallback + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", row.key, row.kind, fallback, row.doc)
	}
	return b.String()
}
