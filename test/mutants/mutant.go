package mutants

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Mutant is one way to make the code wrong.
type Mutant struct {
	Name    string // of its file, without the suffix
	Breaks  string // what is no longer so, in words
	Promise string // which promise of design.md section 3 that is, "5", or "section 8"
	Package string // of the test: "internal/gitlab"
	Test    string // that must fail, with its subtest if it has one
	Edits   []Edit
}

// Edit is a text of a file and what it becomes. The text must be there once.
type Edit struct {
	File     string // from the top of the tree
	Old, New string
}

// suffix is what a mutant's file is called by. It is a txtar archive: lines of
// "key: value" first, then for each edit a section with the file's name and the
// text, and one called "becomes".
const suffix = ".mutant"

var (
	promises = regexp.MustCompile(`^[1-9]$|^section [0-9]+$`)
	caughtBy = regexp.MustCompile(`^([a-z][a-z0-9/]*) (Test[A-Z]\S*)$`)
)

// Load reads every mutant of a directory, by name. Errors: of the first file
// that is no mutant, with what is wrong.
func Load(dir fs.FS) ([]Mutant, error) {
	names, err := fs.Glob(dir, "*"+suffix)
	if err != nil {
		return nil, err
	}
	list := make([]Mutant, 0, len(names))
	for _, name := range names {
		raw, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		m, err := Parse(strings.TrimSuffix(path.Base(name), suffix), raw)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// Parse reads one mutant. Errors: what of it is missing or cannot be read.
func Parse(name string, raw []byte) (Mutant, error) {
	m := Mutant{Name: name}
	archive := txtar.Parse(raw)
	for line := range strings.Lines(string(archive.Comment)) {
		if err := m.header(strings.TrimSpace(line)); err != nil {
			return m, err
		}
	}
	switch {
	case m.Breaks == "":
		return m, m.wrong("says not what it breaks: write `breaks: …`")
	case m.Promise == "":
		return m, m.wrong("names no promise: write `promise: N`, of design.md section 3")
	case m.Test == "":
		return m, m.wrong("names no test: write `caught by: PACKAGE TestName`")
	case len(archive.Files) == 0 || len(archive.Files)%2 != 0:
		return m, m.wrong("has %d sections: an edit is `-- FILE --` with the text, then `-- becomes --`", len(archive.Files))
	}
	for i := 0; i < len(archive.Files); i += 2 {
		from, to := archive.Files[i], archive.Files[i+1]
		edit := Edit{File: from.Name, Old: text(from.Data), New: text(to.Data)}
		if to.Name != "becomes" || edit.Old == "" || edit.Old == edit.New {
			return m, m.wrong("has an edit of %s that changes nothing, or is not followed by `-- becomes --`", from.Name)
		}
		m.Edits = append(m.Edits, edit)
	}
	return m, nil
}

func (m *Mutant) header(line string) error {
	key, value, _ := strings.Cut(line, ": ")
	switch {
	case line == "":
	case key == "breaks":
		m.Breaks = value
	case key == "promise" && promises.MatchString(value):
		m.Promise = value
	case key == "caught by" && caughtBy.MatchString(value):
		m.Package, m.Test, _ = strings.Cut(value, " ")
	default:
		return m.wrong("has the line %q, which is none of `breaks: …`, `promise: N`, `caught by: PACKAGE TestName`", line)
	}
	return nil
}

func (m *Mutant) wrong(format string, args ...any) error {
	return fmt.Errorf("mutant %s %s", m.Name, fmt.Sprintf(format, args...))
}

// text is a section without the line break that ends it.
func text(section []byte) string { return strings.TrimSuffix(string(section), "\n") }
