package fleet

import "testing"

func TestADecisionNamesTheWitnessThatContradictsIt(t *testing.T) {
	for name, test := range map[string]struct {
		decision Decision
		want     Disagreement
	}{
		"GitLab shows jobs after the exit": {Decision{Row: 8, Action: ActDrained, Verdict: VerdictDrained}, DisagreedGitLab},
		"containers are left":              {Decision{Row: 9, Action: ActDrained, Verdict: VerdictDirty}, DisagreedContainers},
		"their grace is not over":          {Decision{Row: 9, Action: ActWait}, ""},
		"all agree":                        {Decision{Row: 10, Action: ActDrained, Verdict: VerdictDrained}, ""},
		"nothing was proven":               {Decision{Row: 5, Action: ActProceed, Verdict: VerdictOverrun}, ""},
	} {
		if got := test.decision.Disagreement(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
