package mutants

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// ByPromise sorts mutants by the promise that they break, then by name.
func ByPromise(list []Mutant) []Mutant {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b Mutant) int {
		return strings.Compare(a.Promise+a.Name, b.Promise+b.Name)
	})
	return sorted
}

// Table renders rows of cells in Markdown, aligned for people who read it as it is.
func Table(rows [][]string) string {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	rule := make([]string, len(width))
	for i := range rule {
		rule[i] = "---"
	}
	var b strings.Builder
	for i, row := range rows {
		line(&b, row, width)
		if i == 0 {
			line(&b, rule, width)
		}
	}
	return b.String()
}

func line(b *strings.Builder, row []string, width []int) {
	for i, cell := range row {
		fmt.Fprintf(b, "| %s%s ", cell, strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
	}
	b.WriteString("|\n")
}
