package component

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What GitLab limits, or knows (docs.gitlab.com/ci/inputs, /ci/components).
const (
	maxBlock     = 1 << 10 // bytes of one interpolation
	maxBody      = 1 << 20 // bytes of a text with interpolations
	maxFunctions = 3       // in one interpolation
	maxInputs    = 20      // of a pipeline; a component that has more cannot be tried as one
)

var (
	specKeys      = []string{"inputs", "component", "description"}
	inputTypes    = []string{"string", "number", "boolean", "array"}
	functions     = regexp.MustCompile(`^(expand_vars|posix_escape|truncate\(\d+, ?\d+\))$`)
	componentKeys = []string{"name", "sha", "version", "reference"}
	globals       = []string{"default", "stages", "workflow", "variables", "include", "image", "services", "cache", "before_script", "after_script"}
)

// Lint says what GitLab would refuse in a template, or what its authors' guide
// asks for and is not there. Gaps of gitlab-ci-local are its purpose: it takes
// unknown inputs, and leaves functions out.
func Lint(t *Template) []string {
	var found []string
	for key := range t.Header {
		if key != "spec" {
			found = append(found, "header: "+key+" beside spec")
		}
	}
	for key := range t.Spec {
		if !slices.Contains(specKeys, key) {
			found = append(found, "spec: "+key+" is not allowed in a component")
		}
	}
	if len(t.Inputs) == 0 {
		if _, there := t.Spec["inputs"]; there {
			found = append(found, "spec: inputs is empty")
		}
	}
	if len(t.Inputs) > maxInputs {
		found = append(found, fmt.Sprintf("spec: %d inputs, more than %d", len(t.Inputs), maxInputs))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Inputs)) {
		for _, what := range lintInput(t.Inputs[name]) {
			found = append(found, "input "+name+": "+what)
		}
	}
	found = append(found, lintBlocks(t)...)
	return append(found, lintBody(t)...)
}

func lintInput(in Input) []string {
	var found []string
	if len(in.Other) > 0 {
		found = append(found, fmt.Sprintf("%v is not known, or not everywhere", in.Other))
	}
	if !slices.Contains(inputTypes, in.Type) {
		found = append(found, "no type is called "+in.Type)
	}
	if !strings.HasSuffix(in.Description, ".") || strings.Contains(in.Description, "\n") {
		found = append(found, "its description is not one line of sentences")
	}
	if in.Regex != "" && (in.Type != "string" || in.Regex[0] != '^' || !strings.HasSuffix(in.Regex, "$")) {
		found = append(found, "its regex must be for a string, and hold all of it")
	}
	if !in.Mandatory {
		if why := in.accept(in.Default); why != "" {
			found = append(found, "its default would be refused: "+why)
		}
	}
	return found
}

// lintBlocks looks at every interpolation.
func lintBlocks(t *Template) []string {
	var found []string
	used := map[string]bool{}
	if len(t.Body) > maxBody {
		found = append(found, "the body is longer than 1 MB")
	}
	if opened := strings.Count(t.Body, "$[["); opened != len(block.FindAllString(t.Body, -1)) {
		found = append(found, "an interpolation that never ends")
	}
	for _, match := range block.FindAllStringSubmatch(t.Body, -1) {
		if len(match[0]) > maxBlock {
			found = append(found, "an interpolation is longer than 1 KB")
		}
		parts := strings.Split(match[1], "|")
		if len(parts)-1 > maxFunctions {
			found = append(found, match[0]+": more than 3 functions")
		}
		for _, f := range parts[1:] {
			if !functions.MatchString(strings.TrimSpace(f)) {
				found = append(found, match[0]+": no such function")
			}
		}
		name := strings.TrimSpace(parts[0])
		used[name] = true
		if input, ok := strings.CutPrefix(name, "inputs."); ok {
			if _, there := t.Inputs[input]; !there {
				found = append(found, match[0]+": no such input")
			}
		} else if key, ok := strings.CutPrefix(name, "component."); !ok || !slices.Contains(componentKeys, key) || !slices.Contains(t.Component, key) {
			found = append(found, match[0]+": not in spec:component, or no such thing")
		}
	}
	for name := range t.Inputs {
		if !used["inputs."+name] {
			found = append(found, "input "+name+" is not used")
		}
	}
	for _, key := range t.Component {
		if !used["component."+key] {
			found = append(found, "component."+key+" is not used")
		}
	}
	return found
}

// lintBody looks at the body with plain values in it.
func lintBody(t *Template) []string {
	body, err := t.Render(examples(t))
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(body)) {
		job, isJob := body[key].(map[string]any)
		switch {
		case slices.Contains(globals, key):
			found = append(found, key+" is global: it changes jobs that are not ours")
		case strings.HasPrefix(key, ".") && !strings.HasPrefix(key, ".sluice-"):
			found = append(found, key+": a hidden job that may be somebody else's")
		case !isJob:
			found = append(found, key+" is no job")
		case !strings.HasPrefix(key, ".") && job["stage"] != "a-stage":
			found = append(found, key+": its stage is no input")
		case !strings.HasPrefix(key, ".") && key != "a-job":
			found = append(found, key+": its name is no input")
		}
	}
	return found
}

// examples are values for every input that has no default, and for those
// that name things.
func examples(t *Template) map[string]any {
	values := map[string]any{"job": "a-job", "stage": "a-stage"}
	for name, in := range t.Inputs {
		if in.Mandatory {
			values[name] = map[string]any{"string": "https://x", "number": 1, "boolean": true, "array": []any{"x"}}[in.Type]
		}
	}
	return values
}
