package ci

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// joblog writes a GitLab job log: lines, colours and collapsible sections
// (docs.gitlab.com/ci/jobs/job_logs, "Custom collapsible sections"). GitLab
// keeps colours and drops every movement of the cursor, so there is nothing
// that overwrites itself.
type joblog struct {
	out      io.Writer
	now      func() time.Time
	colour   bool
	sections bool           // write markers
	open     string         // the section's name; "" = none
	about    string         // whose section it is
	used     map[string]int // how many sections a name had
}

// line writes one line.
func (l *joblog) line(text string) { fmt.Fprintln(l.out, text) }

// section makes the lines that follow belong to a subject, in a section with a
// header of its own. It ends the section of another subject; a subject that
// comes back goes on in a section with another name.
func (l *joblog) section(subject, header string) {
	if l.about == subject {
		return
	}
	l.end()
	l.about = subject
	if l.used == nil {
		l.used = map[string]int{}
	}
	l.used[subject]++
	if l.used[subject] > 1 {
		header += " (continued)"
	}
	if !l.sections {
		l.line(l.strong(header))
		return
	}
	l.open = sectionName(fmt.Sprintf("sluice_%s_%d", subject, l.used[subject]))
	fmt.Fprintf(l.out, "\x1b[0Ksection_start:%d:%s\r\x1b[0K%s\n", l.now().Unix(), l.open, l.strong(header))
}

// end ends the section that is open.
func (l *joblog) end() {
	if l.open != "" {
		fmt.Fprintf(l.out, "\x1b[0Ksection_end:%d:%s\r\x1b[0K\n", l.now().Unix(), l.open)
	}
	l.open, l.about = "", ""
}

// sectionName keeps what GitLab allows in the name of a section.
func sectionName(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		default:
			return '-'
		}
	}, text)
}

func (l *joblog) paint(code, text string) string {
	if !l.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (l *joblog) good(text string) string   { return l.paint("32", text) }
func (l *joblog) bad(text string) string    { return l.paint("31;1", text) }
func (l *joblog) alert(text string) string  { return l.paint("33;1", text) }
func (l *joblog) strong(text string) string { return l.paint("1", text) }
