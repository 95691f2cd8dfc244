package fleet

// Disagreement is how a witness contradicted the proof that a drain ended on
// (design.md section 4.2). It holds nothing up; it is counted, because often it
// means that something on the hosts is not as Sluice believes.
type Disagreement string

// The disagreements.
const (
	// DisagreedGitLab: the runner process is long gone and GitLab still shows its
	// jobs executing (row 8): an orphan, or a cut job.
	DisagreedGitLab Disagreement = "gitlab_active_after_exit"
	// DisagreedContainers: containers outlived the runner process (row 9).
	DisagreedContainers Disagreement = "containers_after_exit"
)

// Disagreements lists every one.
func Disagreements() []Disagreement {
	return []Disagreement{DisagreedGitLab, DisagreedContainers}
}

// Disagreement names the contradiction that the decision went by; "" = none.
func (d Decision) Disagreement() Disagreement {
	switch {
	case d.Action != ActDrained:
		return ""
	case d.Row == 8:
		return DisagreedGitLab
	case d.Verdict == VerdictDirty:
		return DisagreedContainers
	default:
		return ""
	}
}
