// Package internal_test holds the tests that look at all rooms at once.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "gitlab.com/sluice-runners/sluice/"

// arrows says which of our own packages each room may import (design.md
// section 10). A room that is not here may import none; an entry ending in a
// slash stands for everything below it. Tests may look further: they build the
// world around their subject.
var arrows = map[string][]string{
	"fleet":                 {},
	"rollout":               {"fleet"},
	"spelling":              {},
	"config":                {"fleet", "spelling", "hooks/imagename"},
	"control":               {"fleet", "rollout", "spelling"},
	"engine":                {"fleet"},
	"engine/queue":          {"engine", "fleet"},
	"engine/enginetest":     {"engine", "fleet"},
	"store":                 {"fleet", "engine", "control"},
	"store/storetest":       {"fleet", "engine", "control"},
	"metrics":               {"fleet"},
	"gitlab":                {"fleet", "engine"},
	"tunnel":                {"fleet"},
	"runnerhost":            {"fleet", "engine", "tunnel"},
	"provider/exec":         {"fleet", "engine"},
	"provider/providertest": {"fleet", "engine"},
	"access":                {"fleet"},
	"doctor":                {"fleet", "engine"},
	"api":                   {"control", "fleet", "access", "doctor"},
	"hooks":                 {"control", "fleet", "hooks/imagename"},
	"hooks/imagename":       {"fleet"},
	"web":                   {"control", "fleet"},
	"client":                {"fleet", "api"}, // api: the handler itself, when no server runs
	"ci":                    {"client"},
	"sim/":                  {"sim/", "fleet", "engine"}, // engine: the ports that it fills
	"cli":                   {"app", "client", "fleet", "config", "access", "control", "doctor", "spelling", "api"},
	"app":                   {"*"},
}

func TestRoomsImportOnlyWhatTheArrowsAllow(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		seen++
		room := filepath.ToSlash(filepath.Dir(path))
		for _, imported := range ours(t, path) {
			if !allowed(room, imported) {
				t.Errorf("%s: %s must not import %s", path, room, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Fatalf("only %d files were looked at", seen)
	}
}

// ours lists what a file imports of this module, without the module's name
// and without internal/.
func ours(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, spec := range file.Imports {
		text, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(text, module); ok {
			list = append(list, strings.TrimPrefix(rest, "internal/"))
		}
	}
	return list
}

func allowed(room, imported string) bool {
	for _, target := range targets(room) {
		below := strings.HasSuffix(target, "/") && strings.HasPrefix(imported, target)
		if target == "*" || target == imported || below {
			return true
		}
	}
	return false
}

func targets(room string) []string {
	if list, ok := arrows[room]; ok {
		return list
	}
	for name, list := range arrows {
		if strings.HasSuffix(name, "/") && strings.HasPrefix(room+"/", name) {
			return list
		}
	}
	return nil
}

func TestArrowsAreChecked(t *testing.T) {
	for _, test := range []struct {
		room, imported string
		want           bool
	}{
		{"fleet", "engine", false},
		{"engine", "fleet", true},
		{"engine", "store", false},
		{"engine", "provider/exec", false},
		{"app", "engine", true},
		{"sim/simhost", "sim/simgitlab", true},
		{"sim/simhost", "app", false},
		{"a-new-room", "fleet", false},
	} {
		if got := allowed(test.room, test.imported); got != test.want {
			t.Errorf("%s → %s: allowed %t, want %t", test.room, test.imported, got, test.want)
		}
	}
}
