package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:generate go test -run TestTheReferencePageIsInStep -update .

var update = flag.Bool("update", false, "write the generated pages anew")

const page = "../../docs/reference/config.md"

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("sluice.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("sluice.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func content(t *testing.T, text []byte) any {
	t.Helper()
	var loose any
	if err := yaml.Unmarshal(text, &loose); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(loose)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTheExampleIsValidByTheSchemaAndByUs(t *testing.T) {
	text, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(content(t, text)); err != nil {
		t.Errorf("an independent validator refuses the example: %v", err)
	}
	c, err := Parse("example.yaml", text, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(c.Specs()["shared"].VMs); got != 4 {
		t.Errorf("%d VMs, want 4", got)
	}
}

func TestTheSchemaRefusesWhatWeRefuse(t *testing.T) {
	for _, extra := range []string{
		"    drain: {capp: 5m}\n", "    drain: {cap: 600}\n", "    drain: {on_overrun: x}\n",
		"    rollout: {max_unavailable: 0}\n", "    runner: {token: glrt-x}\n",
	} {
		if err := schema(t).Validate(content(t, []byte(minimal+extra))); err == nil {
			t.Errorf("the schema accepts %s", extra)
		}
	}
}

// The defaults that the schema tells are the ones that are filled in.
func TestTheSchemasDefaultsAreTheRealOnes(t *testing.T) {
	c, err := parse(t, minimal)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var filled map[string]any
	if err := json.Unmarshal(body, &filled); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows(t) {
		if row.fallback == "" {
			continue
		}
		got := lookUp(filled, strings.Split(strings.ReplaceAll(row.key, "FLEET", "gcp"), "."))
		if same(got) != same(row.fallback) {
			t.Errorf("%s: the schema says %s, the file gets %s", row.key, row.fallback, got)
		}
	}
}

func same(text string) string {
	if d := Duration(text).D(); d > 0 {
		return d.String()
	}
	return text
}

func lookUp(m map[string]any, path []string) string {
	var at any = m
	for _, key := range path {
		inner, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = inner[key]
	}
	text, err := json.Marshal(at)
	if err != nil {
		return err.Error()
	}
	return strings.Trim(string(text), `"`)
}

func TestTheReferencePageIsInStep(t *testing.T) {
	want := reference(t)
	if *update {
		if err := os.MkdirAll("../../docs/reference", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of step: run go test ./internal/config -update", page)
	}
}
