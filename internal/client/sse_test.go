package client

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tmaxmax/go-sse"
)

func all(in io.Reader) (list []string, err error) {
	frames := newFrames(in)
	for {
		data, err := frames.next()
		if err != nil {
			return list, err
		}
		list = append(list, data)
	}
}

func TestAStreamIsReadAsTheSpecificationSays(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"one event":                          {"data: a\n\n", []string{"a"}},
		"no space after the colon":           {"data:a\n\n", []string{"a"}},
		"one space is taken off":             {"data:  a\n\n", []string{" a"}},
		"lines are joined":                   {"data: a\ndata: b\n\n", []string{"a\nb"}},
		"a field without a colon":            {"data\ndata\n\n", []string{"\n"}},
		"comments and other fields":          {": hello\nid: 7\nretry: 10\nevent: x\ndata: a\n\n", []string{"a"}},
		"a comment alone is no event":        {": hello\n\n:\n\ndata: a\n\n", []string{"a"}},
		"an id alone is no event":            {"id: 1\n\ndata: a\n\n", []string{"a"}},
		"carriage returns":                   {"data: a\r\rdata: b\r\r", []string{"a", "b"}},
		"both":                               {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		"a byte order mark":                  {"\ufeffdata: a\n\n", []string{"a"}},
		"only the first is one":              {"\n\ufeffdata: a\n\n", nil},
		"what was begun at the end is lost":  {"data: a\n\ndata: b\n", []string{"a"}},
		"another field that begins the same": {"database: a\n\n", nil},
	} {
		got, err := all(strings.NewReader(c.stream))
		if !slices.Equal(got, c.want) || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestAnEndlessFrameIsRefused(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), strings.NewReader(strings.Repeat("x", 2*frameLimit)))
	if _, err := all(endless); !errors.Is(err, errFrameTooLong) {
		t.Errorf("got %v", err)
	}
	lines := strings.NewReader(strings.Repeat("data: x\n", frameLimit/4))
	if _, err := all(lines); !errors.Is(err, errFrameTooLong) {
		t.Errorf("many lines: got %v", err)
	}
}

func TestACarriageReturnEndsTheFrameAtOnce(t *testing.T) {
	out, in := io.Pipe()
	defer func() { _ = out.Close() }()
	go func() { _, _ = io.WriteString(in, "data: a\r\r") }() // and no more
	if data, err := newFrames(out).next(); err != nil || data != "a" {
		t.Errorf("%q, %v", data, err)
	}
}

// plain reads a stream in another way: whole, by its blank lines.
func plain(stream string) (list []string) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
	lines := strings.Split(stream, "\n")
	var data []string
	for _, line := range lines[:len(lines)-1] { // the last one has no end
		field, value, _ := strings.Cut(line, ":")
		switch {
		case line == "" && data != nil:
			list = append(list, strings.Join(data, "\n"))
			data = nil
		case field == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return list
}

// foreign reads a stream with a reader that we did not write.
func foreign(t *testing.T, stream []byte) (list []string) {
	t.Helper()
	for e, err := range sse.Read(bytes.NewReader(stream), &sse.ReadConfig{MaxEventSize: 2 * frameLimit}) {
		if err != nil {
			t.Fatalf("%q: go-sse: %v", stream, err)
		}
		list = append(list, e.Data)
	}
	return list
}

func withData(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(data string) bool { return data == "" })
}

func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "retry: 1000\n\nid: 1\ndata: {\"id\":1}\n\n:\n\n", "data: a\r\ndata: b\r\n\r\n", "\ufeffdata\r\r",
		"data:x\n\ndata:y", "id:\n\n", "data: \x00\xff\n\n", ":" + strings.Repeat("x", 4096) + "\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > frameLimit {
			return
		}
		got, err := all(bytes.NewReader(stream))
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%v", err)
		}
		if want := plain(string(stream)); !slices.Equal(got, want) {
			t.Errorf("%q: read %q, want %q", stream, got, want)
		}
		// go-sse yields an event without data for an id alone; the standard does not
		// dispatch it (WHATWG HTML, 9.2.6).
		if theirs := foreign(t, stream); !slices.Equal(withData(got), withData(theirs)) {
			t.Errorf("%q: read %q, go-sse reads %q", stream, got, theirs)
		}
		if slow, _ := all(iotest.OneByteReader(bytes.NewReader(stream))); !slices.Equal(slow, got) {
			t.Errorf("%q: byte by byte %q, at once %q", stream, slow, got)
		}
	})
}
