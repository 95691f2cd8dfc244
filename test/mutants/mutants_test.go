package mutants

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated page anew")

const root = "../.."

func load(t *testing.T) []Mutant {
	t.Helper()
	list, err := Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Whoever changes the code sees at once which mutant has to be mended.
func TestEveryMutantFitsTheCode(t *testing.T) {
	list := load(t)
	for _, m := range list {
		changed, err := m.Apply(root)
		if err != nil {
			t.Error(err)
		}
		for name, content := range changed {
			if _, err := parser.ParseFile(token.NewFileSet(), name, content, 0); strings.HasSuffix(name, ".go") && err != nil {
				t.Errorf("mutant %s leaves no Go: %v", m.Name, err)
			}
		}
	}
	if len(list) < 20 {
		t.Errorf("there are only %d mutants", len(list))
	}
}

func TestEveryMutantNamesATestThatIsThere(t *testing.T) {
	tests := map[string]map[string]bool{}
	for _, m := range load(t) {
		if tests[m.Package] == nil {
			tests[m.Package] = testsOf(t, m.Package)
		}
		if top, _, _ := strings.Cut(m.Test, "/"); !tests[m.Package][top] {
			t.Errorf("mutant %s: %s has no %s", m.Name, m.Package, top)
		}
	}
}

func testsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

func TestEveryPromiseHasAMutant(t *testing.T) {
	missing := map[string]bool{"1": true, "2": true, "3": true, "4": true, "5": true, "6": true, "7": true, "8": true, "9": true}
	for _, m := range load(t) {
		delete(missing, m.Promise)
	}
	if len(missing) > 0 {
		t.Errorf("no mutant breaks the promises %v", missing)
	}
}

// What is wrong with a mutant is said so that it can be mended.
func TestAMutantThatIsNoneSaysWhy(t *testing.T) {
	const good = "breaks: everything\npromise: 1\ncaught by: internal/fleet TestX\n-- go.mod --\nmodule gitlab.com/sluice-runners/sluice\n-- becomes --\nmodule other\n"
	for _, test := range []struct{ old, new, says string }{
		{"breaks: everything\n", "", "says not what it breaks"},
		{"promise: 1\n", "", "names no promise"},
		{"promise: 1", "promise: all", `has the line "promise: all"`},
		{"caught by: internal/fleet TestX\n", "", "names no test"},
		{"internal/fleet TestX", "internal/fleet", `has the line "caught by: internal/fleet"`},
		{"-- becomes --\n", "", "has 1 sections"},
		{"module other\n", "module gitlab.com/sluice-runners/sluice\n", "changes nothing"},
		{"-- go.mod --\nmodule git", "-- go.mod --\nmodule hub\nmodule git", `go.mod has no line "module hub"; mend bad.mutant`},
		{"-- go.mod --\n", "-- go.mod --\ngo 1.26.8\n", "but not one after another"},
		{"-- go.mod --\nmodule gitlab.com/sluice-runners/sluice", "-- go.mod --\n// indirect", "times; take more of it along"},
		{"go.mod", "gone.mod", "gone.mod: no such file"},
	} {
		raw := strings.Replace(good, test.old, test.new, 1)
		m, err := Parse("bad", []byte(raw))
		if err == nil {
			_, err = m.Apply(root)
		}
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "mutant bad") {
			t.Errorf("of\n%s\nit says %v, not %q", raw, err, test.says)
		}
	}
}

func TestTheMutantsPageIsInStep(t *testing.T) {
	path := filepath.Join(root, "docs", "design", "mutants.md")
	rows := [][]string{{"mutant", "what it breaks", "promise", "caught by"}}
	for _, m := range ByPromise(load(t)) {
		rows = append(rows, []string{m.Name, m.Breaks, m.Promise, "`" + m.Package + "` `" + m.Test + "`"})
	}
	want := intro + plain(rows)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what the mutants say (%v): run make generate", path, err)
	}
}

// plain is a table without padding: a longer name changes one line of the page.
func plain(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
	}
	return b.String()
}

const intro = `<!-- Generated from test/mutants/testdata by "make generate". Do not edit. -->
# Mutants: would a test notice?

Each line is a way to make the code wrong that somebody could take for a simplification, the promise of the design that it breaks, and the test
that fails for it. ` + "`make mutants`" + ` compiles each into the package of its test (` + "`go test -overlay`" + `: the tree is not touched) and runs that test
alone. A mutant that survives fails the suite; so does one that does not fit the code any more, does not build, or whose test fails without it too.
` + "`make mutants ONLY=name`" + ` tries one and shows how its test fails.

A mutant is a file in ` + "`test/mutants/testdata`" + `: what it breaks, the promise, the test, then a text of a file that is there once, and what it becomes.
` + "`make test-fast`" + ` says at once which of them a change has to take along. Whoever adds a guard adds the mutant that takes it away; if none of the
tests notices, the test is what is missing. The numbers of the promises (section 8 is about who may ask):

1 no job is cut inside the cap · 2 the token survives · 3 one VM in, one VM out · 4 nothing is deleted that cannot come back · 5 unknown is not idle ·
6 a bad image costs one VM · 7 asked is not observed · 8 stoppable until the delete · 9 a person can see what it waits for

`
