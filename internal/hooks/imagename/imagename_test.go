package imagename

import (
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestATemplateYieldsAName(t *testing.T) {
	for text, want := range map[string]string{
		"runner-{{ .ShortSHA }}":                   "runner-0123abcd",
		"quay.io/ci/runner:{{.Tag}}":               "quay.io/ci/runner:v1.2.3",
		"fixed":                                    "fixed",
		`{{ if eq .Tag "v1.2.3" }}a{{ end }}b`:     "ab",
		`projects/p/{{ printf "%.4s" .ShortSHA }}`: "projects/p/0123",
	} {
		parsed, err := Parse("release", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := parsed.Render(map[string]string{"ShortSHA": "0123abcd", "Tag": "v1.2.3"})
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestATemplateThatCannotYieldANameIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{{ .Shortsha }}":              `no entry for key "Shortsha"`,
		"{{ .Tag":                      "not a template",
		"{{ .Tag | shell }}":           `function "shell" not defined`,
		"":                             "would be",
		"a b":                          "would be",
		"{{ range 9999 }}abc{{ end }}": "longer than",
	} {
		_, err := Parse("tag", text)
		if fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Parse("push", "{{ .Tag }}"); err == nil {
		t.Error("a push has no tag")
	}
}

// A tag or branch is pushed by somebody who need not be trusted with a shell.
func TestAValueThatIsNoNameIsRefused(t *testing.T) {
	parsed, err := Parse("tag", "img-{{ .Tag }}")
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"$(id)", "a b", "a\nb", "a;b", "ä", "'", "`x`", "--x y"} {
		if got, err := parsed.Render(map[string]string{"Tag": tag}); err == nil {
			t.Errorf("%q became %q", tag, got)
		}
	}
	if _, err := parsed.Render(map[string]string{"Branch": "main"}); err == nil || !strings.Contains(err.Error(), "known here: .Branch") {
		t.Errorf("a missing value: %v", err)
	}
	if got, err := mustParse(t, "{{ .Tag }}").Render(map[string]string{"Tag": "-rf"}); err == nil {
		t.Errorf("an option became the image %q", got)
	}
}

func mustParse(t *testing.T, text string) *Template {
	t.Helper()
	parsed, err := Parse("tag", text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
