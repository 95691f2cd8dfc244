package component

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// Template is a component: the header that says its inputs, and the body that
// they go into.
type Template struct {
	Inputs    map[string]Input
	Component []string // what of component.* the body may use
	Header    map[string]any
	Spec      map[string]any
	Body      string // as written
}

// Input is one input of a component (docs.gitlab.com/ci/inputs).
type Input struct {
	Default     any
	Mandatory   bool
	Description string
	Type        string
	Options     []any
	Regex       string
	Other       []string // keys that are not known
}

// Parse reads a template. Errors: it is not two YAML documents.
func Parse(text []byte) (*Template, error) {
	head, body, ok := bytes.Cut(text, []byte("\n---\n"))
	if !ok {
		return nil, fmt.Errorf("no line with --- between header and body")
	}
	t := &Template{Inputs: map[string]Input{}, Body: string(body)}
	if err := yaml.Unmarshal(head, &t.Header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	t.Spec, ok = t.Header["spec"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("header: no spec")
	}
	inputs, _ := t.Spec["inputs"].(map[string]any)
	for name, value := range inputs {
		fields, _ := value.(map[string]any)
		t.Inputs[name] = input(fields)
	}
	list, _ := t.Spec["component"].([]any)
	for _, one := range list {
		t.Component = append(t.Component, fmt.Sprint(one))
	}
	return t, nil
}

func input(fields map[string]any) Input {
	in := Input{Mandatory: true, Type: "string"}
	for key, value := range fields {
		switch key {
		case "default":
			in.Default, in.Mandatory = value, false
		case "description":
			in.Description = fmt.Sprint(value)
		case "type":
			in.Type = fmt.Sprint(value)
		case "options":
			in.Options, _ = value.([]any)
		case "regex":
			in.Regex = fmt.Sprint(value)
		default:
			in.Other = append(in.Other, key)
		}
	}
	return in
}

// accept says why GitLab would refuse a value; "" if it would not.
func (in Input) accept(value any) string {
	ok := map[string]bool{}
	switch value.(type) {
	case string:
		ok["string"] = true
	case int, int64, uint64, float64:
		ok["number"] = true
	case bool:
		ok["boolean"] = true
	case []any:
		ok["array"] = true
	}
	if !ok[in.Type] {
		return fmt.Sprintf("%v is no %s", value, in.Type)
	}
	if len(in.Options) > 0 {
		for _, option := range in.Options {
			if fmt.Sprint(option) == fmt.Sprint(value) {
				return ""
			}
		}
		return fmt.Sprintf("%v is none of %v", value, in.Options)
	}
	if in.Regex != "" {
		pattern, err := regexp.Compile(in.Regex) // RE2, as GitLab's
		if err != nil {
			return err.Error()
		}
		if text, _ := value.(string); !pattern.MatchString(text) {
			return fmt.Sprintf("%q does not match %s", text, in.Regex)
		}
	}
	return ""
}

// block is one interpolation.
var block = regexp.MustCompile(`\$\[\[(.*?)\]\]`)

// Render interpolates a body with values, after the defaults; what holds a
// block and nothing else keeps its type, as in GitLab. Errors: a mandatory
// input without a value, a result that is no YAML.
func (t *Template) Render(values map[string]any) (map[string]any, error) {
	var missing []string
	text := block.ReplaceAllStringFunc(t.Body, func(found string) string {
		name, _ := strings.CutPrefix(strings.TrimSpace(block.FindStringSubmatch(found)[1]), "inputs.")
		value, ok := values[name]
		if in := t.Inputs[name]; !ok {
			value, ok = in.Default, !in.Mandatory
		}
		if !ok {
			missing = append(missing, name)
		}
		if list, ok := value.([]any); ok {
			flow, err := yaml.MarshalWithOptions(list, yaml.JSON())
			if err != nil {
				missing = append(missing, name+": "+err.Error())
			}
			return strings.TrimSpace(string(flow))
		}
		return fmt.Sprint(value)
	})
	if len(missing) > 0 {
		return nil, fmt.Errorf("no value for %s", strings.Join(missing, ", "))
	}
	var body map[string]any
	if err := yaml.Unmarshal([]byte(text), &body); err != nil {
		return nil, fmt.Errorf("the body with its inputs is no YAML: %w", err)
	}
	return body, nil
}
