package control

import (
	"maps"
	"slices"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func keys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// unknown says that a name is not known and which known one is near it.
func unknown(what, name string, known []string) *fleet.Error {
	err := fleet.Errorf(fleet.CodeNotFound, "there is no %s %q", what, name)
	if near := nearest(name, known); near != "" {
		return err.WithHint("did you mean %q?", near)
	}
	if len(known) == 0 {
		return err.WithHint("none is configured")
	}
	return err.WithHint("known: %s", strings.Join(known, ", "))
}

// nearest yields the known name with the smallest edit distance, if that is
// at most a third of the name's length (at least 2).
func nearest(name string, known []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, candidate := range known {
		if d := edits(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current := make([]int, len(b)+1)
		current[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			current[j+1] = min(previous[j]+cost, previous[j+1]+1, current[j]+1)
		}
		previous = current
	}
	return previous[len(b)]
}
