// Package spelling finds the known name that somebody may have meant. It knows
// names only, not what they stand for.
package spelling

// Nearest yields the known name with the smallest edit distance, if that is
// at most a third of the name's length (at least 2); else "".
func Nearest(name string, known []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, candidate := range known {
		if d := edits(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes.
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
