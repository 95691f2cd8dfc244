package alerts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// project is where runbook_url leads; the rest of it is a path in this tree.
const project = "https://gitlab.com/sluice-runners/sluice/-/blob/main/"

func TestEveryAlertSaysWhatAPersonMustKnow(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules(t) {
		if !strings.HasPrefix(r.Alert, "Sluice") || seen[r.Alert] {
			t.Errorf("the name %s is not one of ours, or comes twice", r.Alert)
		}
		seen[r.Alert] = true
		if s := r.Labels["severity"]; len(r.Labels) != 1 || (s != "warning" && s != "critical") {
			t.Errorf("%s has the labels %v", r.Alert, r.Labels)
		}
		if s := r.Annotations["summary"]; !strings.HasSuffix(s, ".") || strings.Contains(s, "{{") {
			t.Errorf("%s: the summary %q is not a plain sentence", r.Alert, s)
		}
		if s := r.Annotations["description"]; !strings.HasSuffix(s, ".") || s == r.Annotations["summary"] {
			t.Errorf("%s: the description %q says nothing more", r.Alert, s)
		}
	}
}

func TestEveryAlertHasItsRunbookAndEveryRunbookItsAlert(t *testing.T) {
	wanted := []string{"README.md"}
	index := read(t, filepath.Join(runbooks, "README.md"))
	for _, r := range rules(t) {
		file := r.Alert + ".md"
		wanted = append(wanted, file)
		if got, want := r.Annotations["runbook_url"], project+"docs/runbooks/"+file; got != want {
			t.Errorf("%s: runbook_url is %q, want %q", r.Alert, got, want)
		}
		if text := read(t, filepath.Join(runbooks, file)); !strings.HasPrefix(text, "# "+r.Alert+"\n") {
			t.Errorf("%s is not titled %s", file, r.Alert)
		}
		if row := fmt.Sprintf("\n| [%s](%s) | %s | %s |\n", r.Alert, file, r.Labels["severity"], r.Annotations["summary"]); !strings.Contains(index, row) {
			t.Errorf("the index of the runbooks has no line %s", row)
		}
	}
	entries, err := os.ReadDir(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(wanted, entry.Name()) {
			t.Errorf("no alert leads to docs/runbooks/%s", entry.Name())
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestRunbooksLinkToWhatIsThere(t *testing.T) {
	links := 0
	for _, path := range runbookFiles(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, path), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), match[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if links == 0 {
		t.Error("no link was found")
	}
}

func runbookFiles(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil || len(list) < 2 {
		t.Fatalf("%v, %v", list, err)
	}
	return list
}

// cases are promtool's unit tests, as far as they are looked at here.
type cases struct {
	Tests []struct {
		Name   string `yaml:"name"`
		Alerts []struct {
			Alert    string           `yaml:"alertname"`
			Expected []map[string]any `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func TestEveryAlertIsTriedFiringAndSilentAndOverARestart(t *testing.T) {
	fires, silent, named := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, path := range caseFiles(t) {
		var file cases
		if err := yaml.Unmarshal([]byte(read(t, path)), &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, test := range file.Tests {
			for _, try := range test.Alerts {
				fires[try.Alert] = fires[try.Alert] || len(try.Expected) > 0
				silent[try.Alert] = silent[try.Alert] || len(try.Expected) == 0
				named[try.Alert] += test.Name + "\n"
			}
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: tried firing %t, silent %t", r.Alert, fires[r.Alert], silent[r.Alert])
		}
		if !strings.Contains(r.Expr, "process_start_time_seconds") {
			continue
		}
		for _, want := range []string{"born at 1", "a restart of the controller sets the counter back", "a restart of the controller hides"} {
			if !strings.Contains(named[r.Alert], want) {
				t.Errorf("%s counts, and no case is about %q", r.Alert, want)
			}
		}
	}
}
