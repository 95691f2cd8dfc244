package component_test

import (
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/test/component"
)

const sound = `spec:
  inputs:
    job: {type: string, description: A name., default: a, regex: '^[a-z-]+$'}
    stage: {type: string, description: A stage., default: test}
    list: {type: array, description: Rules., default: []}
---
.sluice-x:
  allow_failure: false
"$[[ inputs.job ]]":
  stage: $[[ inputs.stage ]]
  rules: $[[ inputs.list ]]
  script: [echo]
`

// Each of these is one that GitLab refuses, or that hurts who includes it.
func TestALintThatIsNeededFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ before, after, finds string }{
		"an input that is not declared":      {"$[[ inputs.stage ]]", "$[[ inputs.stages ]]", "no such input"},
		"an input that is not used":          {"  rules: $[[ inputs.list ]]\n", "", "input list is not used"},
		"a function that there is not":       {"inputs.stage ]]", "inputs.stage | shout ]]", "no such function"},
		"too many functions":                 {"inputs.stage ]]", "inputs.stage | expand_vars | posix_escape | expand_vars | posix_escape ]]", "more than 3 functions"},
		"a truncate without its arguments":   {"inputs.stage ]]", "inputs.stage | truncate ]]", "no such function"},
		"component.version without the spec": {"script: [echo]", "script: [echo $[[ component.version ]]]", "not in spec:component"},
		"a component key that there is not":  {"  inputs:\n", "  component: [tag]\n  inputs:\n", "component.tag is not used"},
		"spec:include":                       {"  inputs:\n", "  include: []\n  inputs:\n", "include is not allowed"},
		"a default outside its regex":        {"default: a,", "default: A,", "default would be refused"},
		"a default of another type":          {"default: []", "default: none", "default would be refused"},
		"a type that there is not":           {"type: array", "type: list", "no type is called list"},
		"spec:inputs:rules":                  {"{type: string, description: A stage.", "{rules: [], type: string, description: A stage.", "[rules] is not known"},
		"no description":                     {"description: A stage., ", "", "description"},
		"a regex that holds a part":          {"'^[a-z-]+$'", "'[a-z-]+'", "hold all of it"},
		"a global keyword":                   {"  script: [echo]\n", "  script: [echo]\nstages: [a]\n", "stages is global"},
		"a hidden job of anybody":            {".sluice-x", ".base", "may be somebody else's"},
		"a fixed name":                       {`"$[[ inputs.job ]]"`, "job", "its name is no input"},
		"a fixed stage":                      {"stage: $[[ inputs.stage ]]", "stage: test", "its stage is no input"},
		"an interpolation without end":       {"$[[ inputs.list ]]", "$[[ inputs.list", "never ends"},
		"a long interpolation":               {"$[[ inputs.list ]]", "$[[ inputs.list" + strings.Repeat(" ", 1024) + "]]", "longer than 1 KB"},
		"a long body":                        {"[echo]", "[" + strings.Repeat("x", 1<<20) + "]", "longer than 1 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(sound, c.before, c.after, 1)
			if text == sound {
				t.Fatalf("%q is not there", c.before)
			}
			parsed, err := component.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if found := strings.Join(component.Lint(parsed), "\n"); !strings.Contains(found, c.finds) {
				t.Errorf("found %q, want %q", found, c.finds)
			}
		})
	}
	parsed, err := component.Parse([]byte(sound))
	if err != nil {
		t.Fatal(err)
	}
	if found := component.Lint(parsed); len(found) > 0 {
		t.Errorf("the sound one: %v", found)
	}
}

func TestAnExampleThatGitLabWouldRefuseIsFound(t *testing.T) {
	parsed, err := component.Parse([]byte(strings.Replace(sound, "default: test", "options: [test, deploy]", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ reference, inputs, finds string }{
		"an unknown input":  {"$CI_SERVER_FQDN/a/b/x@1.0.0", "{stage: test, jobs: a}", "no input is called jobs"},
		"a missing input":   {"$CI_SERVER_FQDN/a/b/x@1.0.0", "{job: a}", "input stage is missing"},
		"a wrong value":     {"$CI_SERVER_FQDN/a/b/x@1.0.0", "{stage: build}", "is none of"},
		"a host of its own": {"gitlab.com/a/b/x@1.0.0", "{stage: test}", "a mirror has another host"},
		"a moving version":  {"$CI_SERVER_FQDN/a/b/x@~latest", "{stage: test}", "pin a whole version"},
		"no version":        {"$CI_SERVER_FQDN/a/b/x", "{stage: test}", "not HOST/PROJECT/NAME@VERSION"},
	} {
		t.Run(name, func(t *testing.T) {
			page := "text\n```yaml\ninclude:\n  - component: " + c.reference + "\n    inputs: " + c.inputs + "\n```\n"
			examples, found := component.Examples(page, "x")
			for _, inputs := range examples {
				found = append(found, component.Use(parsed, inputs)...)
			}
			if !strings.Contains(strings.Join(found, "\n"), c.finds) {
				t.Errorf("found %v, want %q", found, c.finds)
			}
		})
	}
}
