package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// result is what `go test -json` told.
type result struct {
	failed bool
	built  bool
	began  map[string]bool
	end    map[string]string // test → pass, fail, skip
	said   map[string]string // test → its output; "" = the package's and the compiler's
}

func read(stream []byte) *result {
	r := &result{built: true, began: map[string]bool{}, end: map[string]string{}, said: map[string]string{}}
	for row := range bytes.Lines(stream) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(row, &e) != nil {
			r.said[""] += string(row)
			continue
		}
		switch e.Action {
		case "run":
			r.began[e.Test] = true
		case "pass", "fail", "skip":
			r.end[e.Test] = e.Action
		case "build-fail":
			r.built = false
		case "output", "build-output":
			r.said[e.Test] += e.Output
		}
	}
	return r
}

// caught says why the test did not fail as it should have; nil = it did. One
// that began and never ended has crashed, or hangs.
func (r *result) caught(test string) error {
	end := r.end[test]
	switch {
	case !r.built:
		return fmt.Errorf("it does not build:\n%s", r.said[""])
	case end == "fail", end == "" && r.began[test] && r.failed:
		return nil
	case end == "pass":
		return fmt.Errorf("IT SURVIVED: %s passes with it", test)
	case end == "skip":
		return fmt.Errorf("its test was skipped: %s", r.said[test])
	default:
		return fmt.Errorf("its test was not run: %s", r.said[""])
	}
}

// A mutant is caught by its test's failure, and by nothing else.
func TestOnlyAFailureOfTheNamedTestCatches(t *testing.T) {
	const begins = `{"Action":"run","Test":"TestX"}` + "\n"
	for name, c := range map[string]struct{ stream, says string }{
		"it fails":          {begins + `{"Action":"fail","Test":"TestX"}`, ""},
		"it never ends":     {begins + `{"Action":"output","Output":"panic: test timed out"}`, ""},
		"it passes":         {begins + `{"Action":"pass","Test":"TestX"}`, "IT SURVIVED: TestX"},
		"it is skipped":     {begins + `{"Action":"output","Test":"TestX","Output":"no root"}` + "\n" + `{"Action":"skip","Test":"TestX"}`, "skipped: no root"},
		"another fails":     {`{"Action":"run","Test":"TestY"}` + "\n" + `{"Action":"fail","Test":"TestY"}`, "was not run"},
		"its subtest fails": {`{"Action":"run","Test":"TestX/a"}` + "\n" + `{"Action":"fail","Test":"TestX/a"}`, "was not run"},
		"there is none":     {`{"Action":"output","Output":"no tests to run"}`, "was not run: no tests to run"},
		"no build":          {`{"Action":"build-output","Output":"x.go:1: undefined: y"}` + "\n" + `{"Action":"build-fail"}`, "does not build:\nx.go:1: undefined: y"},
	} {
		r := read([]byte(c.stream))
		r.failed = true
		switch err := r.caught("TestX"); {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: it says %v, not %q", name, err, c.says)
		}
	}
}
