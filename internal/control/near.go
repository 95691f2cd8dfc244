package control

import (
	"maps"
	"slices"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/spelling"
)

func keys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// unknown says that a name is not known there, such as " in fleet gcp", and
// which known one is near it.
func unknown(what, name, there string, known []string) *fleet.Error {
	err := fleet.Errorf(fleet.CodeNotFound, "there is no %s %q%s", what, name, there)
	if near := spelling.Nearest(name, known); near != "" {
		return err.WithHint("did you mean %q?", near)
	}
	if len(known) == 0 {
		return err.WithHint("none is configured")
	}
	return err.WithHint("known: %s", strings.Join(known, ", "))
}
