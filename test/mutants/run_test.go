//go:build mutants

package mutants

import (
	"bytes"
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
	cmd.Env = environment()
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

// pattern is a test's name for -run, with that of its subtest.
func pattern(test string) string {
	return "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
}
