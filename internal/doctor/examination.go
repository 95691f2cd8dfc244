package doctor

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// examination is one look at one fleet.
type examination struct {
	patient Patient
	spec    fleet.Spec
	now     time.Time
	vms     []string
	alone   bool // no other fleet has the same runner entry

	scopeless     bool // the GitLab token has no scope to read with
	managers      []fleet.Manager
	managersKnown bool

	refused error // GitLab's, of the runner token; judged when the hosts were seen

	mu       sync.Mutex // hosts are looked at side by side
	findings []Finding
	seen     map[string]*fleet.HostFacts // by VM: those that answered
}

func (e *examination) add(f Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.findings = append(e.findings, f)
}

// found adds a finding about a VM or, with "", the fleet.
func (e *examination) found(code Code, vm, what string) { e.add(finding(code, vm, what)) }

// sorted yields the findings: the fleet's first, then by VM, errors first.
func (e *examination) sorted() []Finding {
	list := append([]Finding{}, e.findings...)
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.VM, b.VM), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Check, b.Check))
	})
	return list
}

// failure makes a finding of an error: its words, its hint as the mend.
func failure(code Code, vm string, err error) Finding {
	f := finding(code, vm, err.Error())
	if hint := fleet.HintOf(err); hint != "" {
		f.Mend = hint
		f.What = trimHint(f.What, hint)
	}
	return f
}

func trimHint(text, hint string) string {
	if tail := " (" + hint + ")"; len(text) > len(tail) && text[len(text)-len(tail):] == tail {
		return text[:len(text)-len(tail)]
	}
	return text
}
