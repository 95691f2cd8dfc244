package cli

import (
	"encoding/json"
	"strings"
	"text/tabwriter"
)

func (p *program) json() bool { return p.output == "json" }

func (p *program) printJSON(v any) error {
	out := json.NewEncoder(p.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// table prints aligned columns.
func (p *program) table(rows func(*tabwriter.Writer)) error {
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	rows(w)
	return w.Flush()
}

// dash stands where there is nothing.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// short drops the zero parts that Go prints: 10m0s is 10m.
func short(duration string) string {
	if s, ok := strings.CutSuffix(duration, "m0s"); ok {
		duration = s + "m"
	}
	if s, ok := strings.CutSuffix(duration, "h0m"); ok {
		duration = s + "h"
	}
	return duration
}
