package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// around is what the examples of the pages leave out.
const around = `gitlab: {url: https://gitlab.example.com, token: {file: /run/secrets/gitlab-read}}
fleets:
  shared:
    runner: {id: 4711, token: {file: /run/secrets/runner-token}}
    vms: {names: [runner-01, runner-02]}
    provider:
      exec: {list: [/opt/vm], describe: [/opt/vm], prepare: [/opt/vm], create: [/opt/vm], delete: [/opt/vm]}
    host: {user: admin, key: {file: /run/secrets/ssh}}
`

var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

var comment = regexp.MustCompile(` #.*`)

// What people copy from a page is a configuration.
func TestTheExamplesOfTheDocsAreValid(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	_, root := schemaOf()
	tried := map[string]int{}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			source := strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n")
			example := whole(source)
			var file map[string]any
			if err := yaml.Unmarshal([]byte(source), &file); err != nil || !ours(file, func(key string) bool { return root.Properties[key] != nil }) {
				continue // a pipeline's, or Prometheus's
			}
			if strings.Contains(comment.ReplaceAllString(source, ""), "…") {
				continue // an extract
			}
			tried[filepath.Base(page)]++
			if _, err := Parse(page, []byte(example), func(string) (string, bool) { return "", false }); err != nil {
				t.Errorf("%v\n%s", err, example)
			}
		}
	}
	for _, page := range []string{"access.md", "component.md", "webhooks.md"} {
		if tried[page] == 0 {
			t.Errorf("%s has no example that was tried: %v", page, tried)
		}
	}
}

func ours(file map[string]any, known func(string) bool) bool {
	for key := range file {
		if !known(key) {
			return false
		}
	}
	return len(file) > 0
}

// whole gives an example what it leaves out.
func whole(example string) string {
	has := regexp.MustCompile(`(?m)^[a-z]+:`).FindAllString(example, -1)
	var parts []string
	for part := range strings.SplitSeq(around, "\nfleets:") {
		if !strings.HasPrefix(part, "gitlab:") {
			part = "fleets:" + part
		}
		if key, _, _ := strings.Cut(part, ":"); !slices.Contains(has, key+":") {
			parts = append(parts, strings.TrimRight(part, "\n"))
		}
	}
	return strings.Join(parts, "\n") + "\n" + example
}
