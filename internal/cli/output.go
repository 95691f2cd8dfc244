package cli

import (
	"encoding/json"
	"strings"
	"text/tabwriter"
	"time"
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

// at is a moment in the reader's time zone: the clock's.
func (p *program) at(t time.Time) time.Time { return t.In(p.Now().Location()) }

// date is a moment with its day.
func (p *program) date(t time.Time) string { return p.at(t).Format(time.DateTime) }

// clock is a moment of today without its day, and any other with it.
func (p *program) clock(t time.Time) string {
	if at := p.at(t).Format(time.DateOnly); at != p.Now().Format(time.DateOnly) {
		return p.date(t)
	}
	return p.at(t).Format(clockFormat)
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
