package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// event is one line of the stream, as `go doc test2json` describes it.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

// counts are tests, subtests included.
type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

func (c counts) appendTo(path, name string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %d %d %d\n", name, c.passed, c.failed, c.skipped)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// numbers are the lines of passing tests that are worth a reader's time: numbers,
// and the rows of tables.
var numbers = regexp.MustCompile(`(?m)\d+ (of \d+ )?(combinations|worlds|kills|mutants)\b|\bp(50|99)\b|^ *\| .* \|$`)

type tally struct {
	out    io.Writer
	total  counts
	lost   int // packages that failed without a failing test: build, panic, timeout
	pkg    map[string]*counts
	output map[string][]string // by package and test
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, pkg: map[string]*counts{}, output: map[string][]string{}}
}

func (t *tally) broken() bool { return t.total.failed+t.lost > 0 }

// read takes the whole stream. A line that is no event is passed on.
func (t *tally) read(stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Action == "" {
			_, _ = fmt.Fprintln(t.out, lines.Text())
			continue
		}
		t.take(e)
	}
	return lines.Err()
}

func (t *tally) take(e event) {
	key := e.Package + e.ImportPath + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		t.output[key] = append(t.output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e, key)
		} else {
			t.endTest(e, key)
		}
		delete(t.output, key)
	case "build-fail":
		t.print(key)
	}
}

func (t *tally) endTest(e event, key string) {
	c := t.of(e.Package)
	switch e.Action {
	case "pass":
		c.passed++
		t.printNumbers(key)
	case "skip":
		c.skipped++
		t.print(key)
	default:
		c.failed++
		t.print(key)
	}
}

func (t *tally) endPackage(e event, key string) {
	c := t.of(e.Package)
	t.total.passed += c.passed
	t.total.failed += c.failed
	t.total.skipped += c.skipped
	switch {
	case e.Action == "fail":
		if c.failed == 0 {
			t.lost++
			t.total.failed++
		}
		t.print(key)
		t.unfinished(e.Package)
		_, _ = fmt.Fprintf(t.out, "FAIL  %s %.1fs (%s)\n", e.Package, e.Elapsed, *c)
	case *c != counts{}:
		t.printNumbers(key)
		_, _ = fmt.Fprintf(t.out, "ok    %s %.1fs (%s)\n", e.Package, e.Elapsed, *c)
	}
}

// unfinished prints tests that began and never ended: who hung or panicked.
func (t *tally) unfinished(pkg string) {
	for key := range t.output {
		if name, ok := strings.CutPrefix(key, pkg+" "); ok && name != "" {
			_, _ = fmt.Fprintf(t.out, "--- not ended: %s\n", name)
			t.print(key)
		}
	}
}

func (t *tally) of(pkg string) *counts {
	if t.pkg[pkg] == nil {
		t.pkg[pkg] = &counts{}
	}
	return t.pkg[pkg]
}

func (t *tally) print(key string) {
	_, _ = io.WriteString(t.out, strings.Join(t.output[key], ""))
}

func (t *tally) printNumbers(key string) {
	for _, line := range t.output[key] {
		if numbers.MatchString(line) {
			_, _ = io.WriteString(t.out, "      "+strings.TrimSpace(line)+"\n")
		}
	}
}
