//go:build mutants

package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// limit bounds one test of one mutant: a test that hangs for it is a test that
// has noticed, but late.
const limit = "-timeout=90s"

// goTest runs tests of one package by `go test`, mutated or not.
func goTest(t *testing.T, root, pkg, run string, more ...string) *result {
	t.Helper()
	// No debug tables: what takes longest of a mutant is to link its test.
	args := append([]string{"test", "-json", "-short", "-vet=off", "-ldflags=-s -w", "-buildvcs=false", "-failfast", limit, "-run=" + run}, more...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./"+pkg)...) //nolint:gosec // our own arguments
	cmd.Dir = root
	cmd.Env = append(environment(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	r := read(out)
	r.failed = err != nil
	if stderr.Len() > 0 && len(r.began) == 0 {
		r.said[""] += stderr.String()
	}
	return r
}

// environment leaves out what steers our own suites.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SLUICE_") })
}

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

// pattern is a test's name for -run, with that of its subtest.
func pattern(test string) string {
	return "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
}
