package cli

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// palette paints words for a terminal. The zero value paints nothing.
type palette struct{ on bool }

// newPalette looks whether out is a terminal that wants colour (no-color.org).
func newPalette(out io.Writer, getenv func(string) string) palette {
	return palette{on: terminal(out) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func terminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

func (p palette) paint(code, text string) string {
	if !p.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p palette) good(text string) string  { return p.paint("32", text) }
func (p palette) bad(text string) string   { return p.paint("31", text) }
func (p palette) alert(text string) string { return p.paint("33", text) }
func (p palette) quiet(text string) string { return p.paint("2", text) }

// phase paints a phase or state by what it means.
func (p palette) phase(word, padded string) string {
	switch word {
	case "succeeded", "serving":
		return p.good(padded)
	case "failed", "held", "missing":
		return p.bad(padded)
	case "canceled", "restoring", "drained":
		return p.alert(padded)
	default:
		return padded
	}
}
