package ci

import (
	"strings"
	"unicode"
)

// longest bounds one piece of text from the network in a log or report.
const longest = 4000

// clean makes text from the network fit for one line of a job log: no control
// characters (they begin GitLab's section markers and colours), nothing that
// reverses the reading direction, bounded.
func clean(text string) string {
	var b strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			r = '?'
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
		if b.Len() > longest {
			return b.String() + " …"
		}
	}
	return b.String()
}
