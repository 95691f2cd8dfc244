//go:build ship

package ship_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// pipeline is what the tests look at in .gitlab-ci.yml.
type pipeline struct {
	stages []string
	jobs   map[string]job
}

type job struct {
	Stage  string `yaml:"stage"`
	Image  string `yaml:"image"`
	Script any    `yaml:"script"`
	Rules  []struct {
		If string `yaml:"if"`
	} `yaml:"rules"`
	Release *struct {
		TagName string `yaml:"tag_name"`
	} `yaml:"release"`
}

func read(t *testing.T) pipeline {
	t.Helper()
	var raw map[string]any
	text := readFile(t, root+"/.gitlab-ci.yml")
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	p := pipeline{jobs: map[string]job{}}
	for key, value := range raw {
		// Keywords, which no job can be called (GitLab, CI/CD YAML syntax reference).
		if slices.Contains([]string{"workflow", "stages", "default", "include", "variables", "spec", "image", "services", "cache", "before_script", "after_script", "pages"}, key) {
			continue
		}
		again, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var j job
		if err := yaml.Unmarshal(again, &j); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		p.jobs[key] = j
	}
	for _, stage := range raw["stages"].([]any) {
		p.stages = append(p.stages, stage.(string))
	}
	return p
}

func TestReleaseIsMadeByTheKeywordAfterEverythingElse(t *testing.T) {
	p := read(t)
	release, ok := p.jobs["release"]
	if !ok || release.Release == nil || release.Release.TagName != "$CI_COMMIT_TAG" {
		t.Fatalf("the release job is %+v", release)
	}
	if last := p.stages[len(p.stages)-1]; release.Stage != last {
		t.Errorf("it is in stage %s of %q", release.Stage, p.stages)
	}
	for name, j := range p.jobs {
		if j.Stage == release.Stage && name != "release" {
			t.Errorf("%s runs beside the release: its failure would come too late", name)
		}
		if strings.HasSuffix(j.Image, ":latest") || (j.Image != "" && !strings.Contains(j.Image, ":")) {
			t.Errorf("%s: the image %s is not pinned", name, j.Image)
		}
	}
	for _, name := range []string{"lint", "unit", "component", "build", "containers"} {
		if _, ok := p.jobs[name]; !ok {
			t.Errorf("there is no job %s", name)
		}
	}
}

func TestPipelineUsesTargetsThatTheMakefileHas(t *testing.T) {
	makefile := readFile(t, root+"/Makefile")
	called := 0
	for name, j := range read(t).jobs {
		text, err := yaml.Marshal(j.Script)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`make ([a-z -]+)`).FindAllStringSubmatch(string(text), -1) {
			for _, target := range strings.Fields(line[1]) {
				called++
				if !strings.Contains(makefile, "\n"+target+":") {
					t.Errorf("%s runs make %s, which is not there", name, target)
				}
			}
		}
	}
	if called < 8 {
		t.Errorf("only %d targets were seen", called)
	}
}

// gitlab-ci-local checks the file against GitLab's own schema, and says which
// jobs a pipeline would have.
func TestPipelineIsValidByGitLabsSchemaAndReleasesOnlyTags(t *testing.T) {
	program, err := filepath.Abs(root + "/.ci/gitlab-ci-local")
	if err != nil {
		t.Fatal(err)
	}
	must(t, root+"/.ci/component-tool")
	dir := project(t)
	main, tag := jobs(t, program, dir), jobs(t, program, dir, "--variable", "CI_COMMIT_TAG=1.2.3")
	if want := []string{"build", "component", "containers", "lint", "unit"}; !slices.Equal(main, want) {
		t.Errorf("on the default branch: %q, not %q", main, want)
	}
	if want := []string{"build", "component", "containers", "lint", "packages", "release", "unit"}; !slices.Equal(tag, want) {
		t.Errorf("on a tag: %q, not %q", tag, want)
	}
}

// gitlab-ci-local takes every tag for a branch too: which tags have a pipeline is
// read from the rule.
func TestOnlyTagsThatAreVersionsHaveAPipeline(t *testing.T) {
	found := regexp.MustCompile(`\$CI_COMMIT_TAG =~ /(.+)/`).FindStringSubmatch(readFile(t, root+"/.gitlab-ci.yml"))
	if found == nil {
		t.Fatal("the workflow has no rule about tags")
	}
	rule := regexp.MustCompile(found[1])
	for name, want := range map[string]bool{
		"1.2.3": true, "1.2.3-rc.1": true, "v1.2.3": false, "nightly": false, "1.2": false, "1.2.3 x": false, "x1.2.3": false, "1.2.3-": false,
	} {
		if rule.MatchString(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// project is a repository with nothing in it but the pipeline and the component
// that it includes.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/.gitlab-ci.yml", []byte(readFile(t, root+"/.gitlab-ci.yml")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/templates", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/templates/recreate.yml", []byte(readFile(t, root+"/templates/recreate.yml")), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "sh", "-c", `cd "$1" && touch go.sum && git init -q -b main && git add . &&
		git -c user.name=test -c user.email=test@example.com commit -q -m test &&
		git remote add origin https://gitlab.com/sluice-runners/sluice.git &&
		git update-ref refs/remotes/origin/main HEAD && git remote set-head origin main`, "sh", dir)
	return dir
}

func jobs(t *testing.T, program, dir string, args ...string) []string {
	t.Helper()
	// What it says about itself goes before the list.
	out := must(t, "sh", append([]string{"-c", `cd "$1" && shift && exec "$@"`, "sh", dir, program, "--list-json"}, args...)...)
	var listed []struct {
		Name string `json:"name"`
		When string `json:"when"`
	}
	if err := json.Unmarshal([]byte(out[max(strings.Index(out, "\n["), 0):]), &listed); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var names []string
	for _, j := range listed {
		if j.When != "never" {
			names = append(names, j.Name)
		}
	}
	slices.Sort(names)
	return names
}
