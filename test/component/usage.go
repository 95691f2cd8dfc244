package component

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```ya?ml\n(.*?)^```$")
	reference = regexp.MustCompile(`^[^@]+/([a-z0-9-]+)@(.+)$`)
	released  = regexp.MustCompile(`^(\d+\.\d+\.\d+|\$CI_COMMIT_SHA)$`)
)

// Examples are the includes of a component in the YAML examples of a page.
func Examples(page, name string) (inputs []map[string]any, problems []string) {
	for _, match := range yamlBlock.FindAllStringSubmatch(page, -1) {
		var pipeline struct {
			Include []struct {
				Component string
				Inputs    map[string]any
			}
		}
		if !strings.Contains(match[1], "component:") {
			continue
		}
		if err := yaml.Unmarshal([]byte(match[1]), &pipeline); err != nil {
			problems = append(problems, "an example is no YAML: "+err.Error())
			continue
		}
		for _, include := range pipeline.Include {
			parts := reference.FindStringSubmatch(include.Component)
			switch {
			case parts == nil:
				problems = append(problems, include.Component+": not HOST/PROJECT/NAME@VERSION")
			case parts[1] != name:
			case !strings.HasPrefix(include.Component, "$CI_SERVER_FQDN/"):
				problems = append(problems, include.Component+": a mirror has another host; write $CI_SERVER_FQDN")
			case !released.MatchString(parts[2]):
				problems = append(problems, include.Component+": pin a whole version")
			default:
				inputs = append(inputs, include.Inputs)
			}
		}
	}
	return inputs, problems
}

// Use says why GitLab would refuse an include with these inputs.
func Use(t *Template, inputs map[string]any) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		in, there := t.Inputs[name]
		if !there {
			found = append(found, "no input is called "+name)
			continue
		}
		if why := in.accept(inputs[name]); why != "" {
			found = append(found, fmt.Sprintf("input %s: %s", name, why))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Inputs)) {
		if _, given := inputs[name]; t.Inputs[name].Mandatory && !given {
			found = append(found, "input "+name+" is missing")
		}
	}
	return found
}
