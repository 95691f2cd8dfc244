// Package imagename renders the name of an image from an event, by a small
// text/template such as "runner-{{ .ShortSHA }}". The configuration checks
// templates with it, the hooks render them. It must not know an event.
package imagename

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Limits of what a template may yield. A name goes into requests to clouds and
// into the input of commands: text that somebody may push as a branch or tag
// must not become anything else there.
const (
	longest = 1024
	sample  = "0123456789abcdef0123456789abcdef01234567"
)

var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

// names are what a template may use, by kind of event.
var names = map[string][]string{
	"pipeline": {"Branch", "PipelineID", "PipelineIID", "Project", "ProjectID", "Ref", "RefSlug", "SHA", "ShortSHA", "Tag"},
	"push":     {"Branch", "Project", "ProjectID", "Ref", "RefSlug", "SHA", "ShortSHA"},
	"tag":      {"Project", "ProjectID", "Ref", "RefSlug", "SHA", "ShortSHA", "Tag"},
	"release":  {"Project", "ProjectID", "Ref", "RefSlug", "SHA", "ShortSHA", "Tag"},
	"merge":    {"Branch", "MergeRequest", "Project", "ProjectID", "Ref", "RefSlug", "SHA", "ShortSHA"},
}

// Names lists what a template may use for events of a kind.
func Names(kind string) []string { return names[kind] }

// Template renders an image's name.
type Template struct {
	parsed *template.Template
}

// Parse reads a template for events of a kind. Errors: CodeInvalid, for what
// is no template, uses a name that the kind does not have, or yields no name.
func Parse(kind, text string) (*Template, error) {
	parsed, err := template.New("image").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "not a template: %s", strings.TrimPrefix(err.Error(), "template: image:")).
			WithHint("write text with {{ .ShortSHA }} in it")
	}
	t := &Template{parsed: parsed}
	values := map[string]string{}
	for _, name := range Names(kind) {
		values[name] = sample
	}
	if _, err := t.Render(values); err != nil {
		return nil, err
	}
	return t, nil
}

// Render yields the name. A value that the template uses and the event does
// not have is an error: no image is called by half a name. Errors: CodeInvalid.
func (t *Template) Render(values map[string]string) (string, error) {
	var b strings.Builder
	if err := t.parsed.Execute(&limited{&b}, values); err != nil {
		return "", fleet.Errorf(fleet.CodeInvalid, "the image's name cannot be made: %s", reason(err)).
			WithHint("known here: %s", strings.Join(dotted(values), ", "))
	}
	name := b.String()
	if !plain.MatchString(name) {
		return "", fleet.Errorf(fleet.CodeInvalid, "the image's name would be %q", shortened(name)).
			WithHint("it must be letters, digits and . _ : / @ + -, and begin with a letter or digit")
	}
	return name, nil
}

// limited ends a template that yields too much.
type limited struct{ *strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > longest {
		return 0, fleet.Errorf(fleet.CodeInvalid, "it is longer than %d bytes", longest)
	}
	return l.Builder.Write(p)
}

// reason leaves out where in the template it happened.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ">: "); i >= 0 {
		return text[i+len(">: "):]
	}
	return strings.TrimPrefix(text, "template: image:")
}

func dotted(values map[string]string) []string {
	list := slices.Sorted(maps.Keys(values))
	for i, name := range list {
		list[i] = "." + name
	}
	return list
}

func shortened(text string) string {
	if len(text) > 64 {
		return text[:64] + "…"
	}
	return text
}
