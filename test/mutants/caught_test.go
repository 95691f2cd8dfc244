//go:build mutants

package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Every promise has tests that would fail if it broke (design.md section 3).
// SLUICE_MUTANT names the only one to try.
func TestEveryMutantIsCaught(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	list := chosen(t, os.Getenv("SLUICE_MUTANT"))
	s := &suite{root: root, unharmed: map[string]*result{}, seconds: map[string]string{}}
	began := time.Now()
	t.Run("without", func(t *testing.T) { s.without(t, list) })
	t.Run("with", func(t *testing.T) { s.with(t, list) })
	t.Logf("%d of %d mutants caught in %.0f s\n%s", s.caught, len(list), time.Since(began).Seconds(), Table(s.rows(list)))
}

func chosen(t *testing.T, name string) []Mutant {
	t.Helper()
	list := load(t)
	if name == "" {
		return list
	}
	var names []string
	for _, m := range list {
		if m.Name == name {
			return []Mutant{m}
		}
		names = append(names, m.Name)
	}
	t.Fatalf("there is no mutant %q; there are\n%s", name, strings.Join(names, "\n"))
	return nil
}

// suite is one run over the mutants.
type suite struct {
	root     string
	mu       sync.Mutex
	unharmed map[string]*result // by package: the tests that must fail, without a mutant
	seconds  map[string]string
	caught   int
}

// without runs the tests on the code as it is: one that fails anyway, or that
// this machine cannot run, catches nothing.
func (s *suite) without(t *testing.T, list []Mutant) {
	tests := map[string][]string{}
	for _, m := range list {
		top, _, _ := strings.Cut(m.Test, "/")
		tests[m.Package] = append(tests[m.Package], top)
	}
	for pkg, names := range tests {
		slices.Sort(names)
		t.Run(strings.ReplaceAll(pkg, "/", "_"), func(t *testing.T) {
			t.Parallel()
			r := goTest(t, s.root, pkg, "^("+strings.Join(slices.Compact(names), "|")+")$")
			s.mu.Lock()
			defer s.mu.Unlock()
			s.unharmed[pkg] = r
		})
	}
}

func (s *suite) with(t *testing.T, list []Mutant) {
	for _, m := range list {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			err := s.try(t, &m)
			var cannot *cannotTell
			switch {
			case errors.As(err, &cannot) && os.Getenv("CI") != "true":
				t.Skip(err)
			case err != nil:
				t.Errorf("%s (%s): %v", m.Name, m.Breaks, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seconds[m.Name] = fmt.Sprintf("%.1f", time.Since(began).Seconds())
			if err == nil {
				s.caught++
			} else {
				s.seconds[m.Name] += " NOT CAUGHT"
			}
		})
	}
}

// cannotTell says that this machine cannot run the test.
type cannotTell struct{ test, why string }

func (c *cannotTell) Error() string { return c.test + " cannot be run here: " + c.why }

// try applies one mutant and runs its test. Nil = caught.
func (s *suite) try(t *testing.T, m *Mutant) error {
	overlay, err := m.Overlay(s.root, t.TempDir())
	if err != nil {
		return err
	}
	switch r := s.unharmed[m.Package]; r.end[m.Test] {
	case "pass":
	case "skip":
		return &cannotTell{m.Test, strings.TrimSpace(r.said[m.Test])}
	case "":
		return fmt.Errorf("%s in %s did not run without it: %s%s", m.Test, m.Package, r.said[m.Test], r.said[""])
	default:
		return fmt.Errorf("%s fails without it too:\n%s", m.Test, r.said[m.Test])
	}
	r := goTest(t, s.root, m.Package, pattern(m.Test), "-overlay="+overlay)
	if err := r.caught(m.Test); err != nil {
		return err
	}
	t.Logf("%s (%s) is caught:\n%s", m.Name, m.Breaks, r.said[m.Test])
	return nil
}

func (s *suite) rows(list []Mutant) [][]string {
	rows := [][]string{{"mutant", "what it breaks", "promise", "caught by", "seconds"}}
	for _, m := range ByPromise(list) {
		rows = append(rows, []string{m.Name, m.Breaks, m.Promise, m.Package + " " + m.Test, s.seconds[m.Name]})
	}
	return rows
}
