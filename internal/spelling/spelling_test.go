package spelling

import "testing"

func TestNearestNamesWhatWasProbablyMeant(t *testing.T) {
	known := []string{"cap", "on_overrun", "hard_cap", "runner-01", "runner-10"}
	for _, c := range []struct{ name, want string }{
		{"capp", "cap"},
		{"on_overun", "on_overrun"},
		{"runner-1", "runner-01"},
		{"something-else-entirely", ""},
		{"", ""},
	} {
		if got := Nearest(c.name, known); got != c.want && (c.name != "" || got != "") {
			t.Errorf("Nearest(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}
