package client

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// frameLimit bounds one frame of an event stream, in bytes: an event is a
// line of text with a little data.
const frameLimit = 1 << 20

// errFrameTooLong is a frame beyond frameLimit: what sends it is no Sluice.
var errFrameTooLong = errors.New("an event of the stream is longer than 1 MiB")

// frames reads a stream of server-sent events (WHATWG HTML, "Server-sent
// events", 9.2.5 and 9.2.6): comments and fields that say nothing to us are
// passed over, and what was begun when the stream ends is no event.
type frames struct {
	in      *bufio.Reader
	begun   bool // a byte was read
	afterCR bool // a line feed now belongs to the line that has ended
	left    int  // bytes that the frame may still have
}

func newFrames(in io.Reader) *frames { return &frames{in: bufio.NewReader(in)} }

// next yields the data of the next event. Errors: errFrameTooLong, and those
// of the reader; io.EOF at the end.
func (f *frames) next() (string, error) {
	var data []string
	f.left = frameLimit
	for {
		line, err := f.line()
		switch {
		case err != nil:
			return "", err
		case line == "" && data != nil:
			return strings.Join(data, "\n"), nil
		case line == "":
			f.left = frameLimit
			continue
		}
		if name, value, _ := strings.Cut(line, ":"); name == "data" {
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
}

// line reads up to a line feed, a carriage return, or both. It does not wait
// for the line feed that may follow a carriage return.
func (f *frames) line() (string, error) {
	var line []byte
	for {
		b, err := f.in.ReadByte()
		if err != nil {
			return "", err
		}
		skip := f.afterCR && b == '\n'
		f.afterCR = b == '\r'
		switch {
		case skip:
		case b == '\n', b == '\r':
			return f.unmarked(line), nil
		case f.left == 0:
			return "", errFrameTooLong
		default:
			f.left--
			line = append(line, b)
		}
	}
}

// unmarked takes the byte order mark off the first line.
func (f *frames) unmarked(line []byte) string {
	text := string(line)
	if !f.begun {
		f.begun = true
		return strings.TrimPrefix(text, "\ufeff")
	}
	return text
}
