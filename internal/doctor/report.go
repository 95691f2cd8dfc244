package doctor

import "time"

// Severity says how bad a finding is.
type Severity string

// The severities. SeverityError stops an operation before anything is
// touched; SeverityWarning lets it go on, with less proof.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Finding is one thing that is wrong: what was found, what it would cause and
// how to mend it.
type Finding struct {
	Code     Code     `json:"code" doc:"Names the kind of finding, and never changes: docs/reference/findings.md lists all."`
	Severity Severity `json:"severity" enum:"error,warning"`
	VM       string   `json:"vm,omitempty" doc:"Empty: the fleet as a whole."`
	Check    string   `json:"check" enum:"reach,units,sudo,identity,gitlab,token,provider,webhook" doc:"Which examination found it."`
	What     string   `json:"what" doc:"What was found."`
	Would    string   `json:"would,omitempty" doc:"What it causes."`
	Mend     string   `json:"mend,omitempty" doc:"What to do."`
}

// Report is what an examination found. No findings = clean.
type Report struct {
	Fleet    string    `json:"fleet"`
	At       time.Time `json:"at"`
	Examined []string  `json:"examined" nullable:"false" doc:"The VMs that were looked at."`
	Findings []Finding `json:"findings" nullable:"false"`
}
