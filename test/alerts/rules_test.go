package alerts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
)

// Where the tested files are.
const (
	deployed  = "../../deploy/prometheus"
	rulesFile = "sluice.rules.yml"
	runbooks  = "../../docs/runbooks"
)

// group is a group of rules in Prometheus' own format.
type group struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func groups(t *testing.T) []group {
	t.Helper()
	var file struct {
		Groups []group `yaml:"groups"`
	}
	if err := yaml.UnmarshalWithOptions([]byte(read(t, filepath.Join(deployed, rulesFile))), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return file.Groups
}

// rules lists every alert.
func rules(t *testing.T) []rule {
	t.Helper()
	var list []rule
	for _, g := range groups(t) {
		list = append(list, g.Rules...)
	}
	if len(list) < 10 {
		t.Fatalf("only %d rules were found", len(list))
	}
	return list
}

// caseFiles lists promtool's unit tests of the rules.
func caseFiles(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(list) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return list
}
