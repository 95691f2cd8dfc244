package exec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"unicode"
)

// The caps on what a command may print.
const (
	maxAnswer   = 1 << 20  // stdout
	maxTail     = 64 << 10 // of a reading verb's stderr; the end is kept
	maxLog      = 64 << 20 // of a long command's stderr; beyond it is emptied
	maxLastLine = 300
)

// errFlood says that a command printed more than maxAnswer on stdout.
var errFlood = errors.New("it printed more than 1 MiB on stdout; logs belong on stderr")

// capped keeps what is written, up to maxAnswer; then every write fails, and
// flooded is called once.
type capped struct {
	buf     bytes.Buffer
	flooded func()
	over    bool
}

func (c *capped) Write(b []byte) (int, error) {
	if c.over {
		return 0, errFlood
	}
	if c.buf.Len()+len(b) > maxAnswer {
		c.over = true
		c.flooded()
		return 0, errFlood
	}
	return c.buf.Write(b)
}

// tail keeps the last maxTail bytes that are written and never fails.
type tail struct{ buf []byte }

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	if n > maxTail {
		b = b[n-maxTail:]
	}
	if over := len(t.buf) + len(b) - maxTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// lastLine yields the last line that is not blank, safe for a terminal.
func lastLine(log []byte) string {
	lines := strings.FieldsFunc(strings.ToValidUTF8(string(log), "?"), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(strings.Map(printable, lines[i]))
		if line == "" {
			continue
		}
		if len(line) > maxLastLine {
			line = strings.ToValidUTF8(line[:maxLastLine], "") + "…"
		}
		return line
	}
	return ""
}

func printable(r rune) rune {
	if r == '\t' {
		return ' '
	}
	if !unicode.IsPrint(r) {
		return -1
	}
	return r
}

// readTail reads the last most bytes of a file; a file that is not there
// reads as nothing.
func readTail(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		if _, err := file.Seek(info.Size()-most, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(file, most))
}
