package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	caseNumber = regexp.MustCompile(`\bT[0-9]{1,3}\b`)
	caseLine   = regexp.MustCompile(`(?m)^\| (T[0-9]+) \| .* \| (.*) \|$`)
	quoted     = regexp.MustCompile("`([^`]+)`")
	testName   = regexp.MustCompile(`^(Test|Benchmark|Fuzz)[A-Z]`)
)

// contracts are suites: their cases are strings in files that are no tests, run
// by tests of the packages that keep them.
var contracts = []string{"internal/provider/providertest", "internal/store/storetest"}

// tree is what the repository's Go files say about cases.
type tree struct {
	tests map[string]bool            // "internal/engine TestX"
	said  map[string]bool            // numbers in any file's comments
	shown map[string]map[string]bool // numbers by the tests that say them
}

// inContract stands for the tests that run a contract.
const inContract = "KeepsTheContract"

func readTree(t *testing.T) tree {
	t.Helper()
	found := tree{map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".go"):
			return found.read(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// read takes in one file.
func (tr tree) read(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir, err := filepath.Rel("..", filepath.Dir(path))
	if err != nil {
		return err
	}
	dir = filepath.ToSlash(dir)
	for _, group := range file.Comments {
		tr.note(group.Text(), "")
	}
	if slices.Contains(contracts, dir) {
		tr.readContract(file)
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && strings.HasSuffix(path, "_test.go") && f.Recv == nil && testName.MatchString(f.Name.Name) {
			tr.readTest(file, f, dir+" "+f.Name.Name)
		}
	}
	return nil
}

// note takes in the numbers of a text, by the test that it belongs to, if any.
func (tr tree) note(text, test string) {
	for _, number := range caseNumber.FindAllString(text, -1) {
		tr.said[number] = true
		if test == "" {
			continue
		}
		if tr.shown[number] == nil {
			tr.shown[number] = map[string]bool{}
		}
		tr.shown[number][test] = true
	}
}

// readTest takes in a test, with the comments above and inside.
func (tr tree) readTest(file *ast.File, f *ast.FuncDecl, name string) {
	tr.tests[name] = true
	for _, group := range file.Comments {
		if group == f.Doc || (group.Pos() > f.Pos() && group.End() < f.End()) {
			tr.note(group.Text(), name)
		}
	}
}

// readContract takes in a suite's comments and the names of its cases.
func (tr tree) readContract(file *ast.File) {
	for _, group := range file.Comments {
		tr.note(group.Text(), inContract)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok {
			tr.note(literal.Value, inContract)
		}
		return true
	})
}

// shows says whether one of the tests says the number.
func (tr tree) shows(number string, tests []string) bool {
	return slices.ContainsFunc(tests, func(test string) bool {
		return tr.shown[number][test] || (strings.HasSuffix(test, inContract) && tr.shown[number][inContract])
	})
}

// cited are the tests of a line of the page, each with its package: "`package`
// `TestX`, `TestY`; `other` `TestZ`".
func cited(cell string) []string {
	var list []string
	dir := ""
	for _, word := range quoted.FindAllStringSubmatch(cell, -1) {
		if testName.MatchString(word[1]) {
			list = append(list, dir+" "+word[1])
		} else {
			dir = word[1]
		}
	}
	return list
}

// docs/design/cases.md is what the numbers in comments stand for.
func TestTheCasesPageIsInStepWithTheTests(t *testing.T) {
	page, err := os.ReadFile("../docs/design/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	found, lines := readTree(t), map[string]bool{}
	for _, line := range caseLine.FindAllStringSubmatch(string(page), -1) {
		number, cell := line[1], line[2]
		if lines[number] {
			t.Errorf("%s has two lines", number)
		}
		lines[number] = true
		tests, _, without := strings.Cut(cell, "Not shown: ")
		names := cited(tests)
		for _, name := range names {
			if !found.tests[name] {
				t.Errorf("%s: there is no test %s", number, name)
			}
		}
		switch {
		case len(names) == 0 && !without:
			t.Errorf("%s has neither a test nor a reason", number)
		case len(names) > 0 && !found.shows(number, names):
			t.Errorf("%s: none of its tests says the number in a comment", number)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(found.said)) {
		if !lines[number] {
			t.Errorf("%s stands in a comment, and has no line on the page", number)
		}
	}
	if len(lines) < 60 || len(found.tests) < 500 {
		t.Errorf("only %d cases and %d tests were looked at", len(lines), len(found.tests))
	}
}
