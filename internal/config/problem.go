package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/spelling"
)

// problem is one thing that is wrong in the file. It never quotes a line of
// the file: somebody may have put a secret there.
type problem struct {
	line, column int
	text, hint   string
}

// Error renders the problem without the file's name.
func (p *problem) Error() string { return p.render("") }

func (p *problem) render(file string) string {
	text := p.text
	if p.hint != "" {
		text += " (" + p.hint + ")"
	}
	if p.line == 0 {
		return fmt.Sprintf("%s: %s", file, text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", file, p.line, p.column, text)
}

func refuse(node ast.Node, text, hint string) *problem {
	return at(node.GetToken(), text, hint)
}

func at(tk *token.Token, text, hint string) *problem {
	p := &problem{text: text, hint: hint}
	if tk != nil && tk.Position != nil {
		p.line, p.column = tk.Position.Line, tk.Position.Column
	}
	return p
}

// problems makes one error of what was found, in the order of the file. Nil
// if nothing was.
func problems(file string, list []*problem) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b *problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	lines := make([]string, len(list))
	for i, p := range list {
		lines[i] = p.render(file)
	}
	return fleet.Errorf(fleet.CodeInvalid, "%s", strings.Join(lines, "\n"))
}

// fromYAML turns an error of the YAML library into a problem: its position and
// its sentence, without the excerpt of the file that it prints.
func fromYAML(err error) *problem {
	var own *problem
	if errors.As(err, &own) {
		return own
	}
	var positioned yaml.Error
	if errors.As(err, &positioned) {
		return at(positioned.GetToken(), positioned.GetMessage(), "")
	}
	return &problem{text: err.Error()}
}

func quoted(text string) string { return strconv.Quote(text) }

// meant is the hint for a name that is not known: the near one, else those that
// are.
func meant(name string, known []string) string {
	if near := spelling.Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	const shown = 8
	if len(known) > shown {
		known = append(slices.Clone(known[:shown]), "…")
	}
	return "known: " + strings.Join(known, ", ")
}
