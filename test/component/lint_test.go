package component_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/cli"
	"gitlab.com/sluice-runners/sluice/test/component"
)

const root = "../../"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func template(t *testing.T, name string) *component.Template {
	t.Helper()
	parsed, err := component.Parse([]byte(read(t, "templates/"+name+".yml")))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// components are the templates, by name. A folder would be one with a
// template.yml in it; there is none yet.
func components(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(root + "templates")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".yml")
		if entry.IsDir() || !ok {
			t.Errorf("templates/%s: GitLab looks for NAME.yml", entry.Name())
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		t.Fatal("no component")
	}
	return names
}

func TestEveryComponentIsOneThatGitLabTakes(t *testing.T) {
	for _, name := range components(t) {
		for _, what := range component.Lint(template(t, name)) {
			t.Errorf("templates/%s.yml: %s", name, what)
		}
	}
}

// The pages say how a component is used; gitlab-ci-local would take any input
// there, GitLab does not.
func TestEveryExampleUsesInputsThatThereAre(t *testing.T) {
	for _, name := range components(t) {
		for _, page := range []string{"README.md", "docs/component.md"} {
			examples, problems := component.Examples(read(t, page), name)
			for _, what := range problems {
				t.Errorf("%s: %s", page, what)
			}
			if len(examples) == 0 {
				t.Errorf("%s: no example of %s", page, name)
			}
			for i, inputs := range examples {
				for _, what := range component.Use(template(t, name), inputs) {
					t.Errorf("%s: example %d of %s: %s", page, i+1, name, what)
				}
			}
		}
	}
}

// What GitLab's guide for component projects asks of a README.
func TestTheReadmeHasASectionForEachComponent(t *testing.T) {
	readme := read(t, "README.md")
	if len(readme) > 1<<20 {
		t.Error("README.md is longer than the catalog shows")
	}
	_, section, ok := strings.Cut(readme, "\n## Components\n")
	if !ok {
		t.Fatal("README.md has no section Components")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range components(t) {
		if !strings.Contains(section, "\n### "+name+"\n") {
			t.Errorf("README.md: no subsection %s", name)
		}
	}
	if !strings.Contains(readme, "\n## Contribute\n") {
		t.Error("README.md has no section Contribute")
	}
	if _, err := os.Stat(root + "LICENSE"); err != nil {
		t.Error(err)
	}
}

// job is the recreate job with inputs in it.
func job(t *testing.T, inputs map[string]any) map[string]any {
	t.Helper()
	all := map[string]any{
		"controller": "https://sluice.example.com", "audience": "https://sluice.example.com", "fleet": "shared", "vms": "runner-01", "cli_image": "sluice:1.0.0",
	}
	for name, value := range inputs {
		all[name] = value
	}
	body, err := template(t, "recreate").Render(all)
	if err != nil {
		t.Fatal(err)
	}
	name := "recreate-runners"
	if given, ok := all["job"].(string); ok {
		name = given
	}
	found, ok := body[name].(map[string]any)
	if !ok {
		t.Fatalf("no job %s in %v", name, body)
	}
	if _, there := body[found["extends"].(string)]; !there {
		t.Errorf("it extends %v, which is not there", found["extends"])
	}
	return found
}

func TestTheJobCallsACommandAndFlagsThatThereAre(t *testing.T) {
	script, _ := job(t, nil)["script"].([]any)
	if len(script) != 1 {
		t.Fatalf("script: %v", script)
	}
	words := strings.Fields(script[0].(string))
	cmd, rest, err := cli.Command(cli.Env{Getenv: os.Getenv}).Find(words[1:])
	if err != nil || cmd.CommandPath() != "sluice ci recreate" {
		t.Fatalf("%v: %v", words, err)
	}
	given := 0
	for _, word := range rest {
		if name, ok := strings.CutPrefix(word, "--"); ok {
			given++
			if !flag(cmd, name) {
				t.Errorf("no flag --%s", name)
			}
		}
	}
	if given < 8 {
		t.Errorf("only %d flags were looked at", given)
	}
}

func flag(cmd *cobra.Command, name string) bool {
	return cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil
}

// The job that docs/component.md promises, whatever its inputs.
func TestTheJobIsSafeToRetryAndToCancelAndKeepsItsReports(t *testing.T) {
	found := job(t, nil)
	for key, want := range map[string]any{"interruptible": false, "timeout": "2h", "resource_group": "sluice-shared", "stage": "deploy"} {
		if found[key] != want {
			t.Errorf("%s: %v, want %v", key, found[key], want)
		}
	}
	retry, _ := found["retry"].(map[string]any)
	if when, _ := retry["when"].([]any); retry["max"] == nil || len(when) == 0 || slices.Contains(when, any("script_failure")) {
		t.Errorf("retry: %v", retry)
	}
	environment, _ := found["environment"].(map[string]any)
	if environment["action"] != "access" || environment["name"] != "runners/shared" {
		t.Errorf("environment: %v", environment)
	}
	artifacts, _ := found["artifacts"].(map[string]any)
	reports, _ := artifacts["reports"].(map[string]any)
	for _, kind := range []string{"junit", "dotenv", "annotations"} {
		if path, _ := reports[kind].(string); !strings.HasPrefix(path, "sluice/recreate-runners/") {
			t.Errorf("reports: %v", reports)
		}
	}
	if artifacts["when"] != "always" {
		t.Errorf("artifacts: %v", artifacts)
	}
	tokens, _ := found["id_tokens"].(map[string]any)
	token, _ := tokens["SLUICE_ID_TOKEN"].(map[string]any)
	if token["aud"] != "https://sluice.example.com" {
		t.Errorf("id_tokens: %v", tokens)
	}
}

// What stands between double quotes in a script is the shell's: a variable is
// meant, a command is not.
func TestNoInputReachesTheShellAsACommand(t *testing.T) {
	parsed := template(t, "recreate")
	script := job(t, nil)["script"].([]any)[0].(string)
	if strings.Contains(script, "'") || strings.Count(script, `"`)%2 != 0 {
		t.Fatalf("not the quotes that this test knows: %s", script)
	}
	_, text, _ := strings.Cut(parsed.Body, "script:")
	text, _, _ = strings.Cut(text, "artifacts:")
	looked := 0
	for name, in := range parsed.Inputs {
		if in.Type != "string" || !strings.Contains(text, "inputs."+name+" ") {
			continue
		}
		looked++
		for _, hostile := range []string{`x" ; id ; "`, "x`id`", "$(id)", `x\`, "${x:-$(id)}", "x\nid", "x'", "x;id", "x|id", "x&id", "x>f"} {
			if why := component.Use(parsed, map[string]any{name: hostile}); !slices.ContainsFunc(why, func(w string) bool { return strings.HasPrefix(w, "input "+name+": ") }) {
				t.Errorf("input %s takes %q", name, hostile)
			}
		}
	}
	if looked < 6 {
		t.Errorf("only %d inputs were looked at", looked)
	}
}
