package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const (
	otherToken   = "runner.token is not the token in the VMs' config.toml"
	compareToken = "put the token of the hosts' config.toml into runner.token, or see whether the VM belongs to another runner"
)

// hostTokens compares the fleet's runner token with the hosts' own, and judges
// GitLab's refusal of it: only a token that the hosts have too is dead.
func (e *examination) hostTokens() {
	same, others := e.compareTokens()
	if e.refused == nil || len(same) > 0 {
		for _, vm := range others {
			e.found(CodeRunnerTokenForeign, vm, otherToken+": no [[runners]] entry of this host has it")
		}
	}
	if e.refused == nil {
		return
	}
	f := failure(CodeRunnerTokenRefused, "", e.refused)
	switch {
	case len(same) > 0:
		dead := finding(CodeRunnerTokenDead, "", fmt.Sprintf("%s; %s with the same token", f.What, running(same)))
		f = dead
	case len(others) > 0:
		f.What = fmt.Sprintf("%s (%s with another one), and GitLab refuses it: %s", otherToken, running(others), f.What)
		f.Mend = compareToken
	default:
		f.What += "; no host's config.toml could be compared"
		f.Would = noManager + "; if the hosts have the same token, none of them gets jobs"
		f.Mend = kindOf(CodeRunnerTokenRefused).Mend
	}
	e.add(f)
}

func running(vms []string) string {
	if len(vms) == 1 {
		return vms[0] + " runs"
	}
	return strings.Join(vms, ", ") + " run"
}

// compareTokens names the VMs whose runner has the fleet's token and those that
// have others only. A config.toml that was not seen counts for neither.
func (e *examination) compareTokens() (same, others []string) {
	if e.patient.RunnerToken == "" {
		return nil, nil
	}
	for _, vm := range slices.Sorted(maps.Keys(e.seen)) {
		facts := e.seen[vm]
		switch {
		case !facts.ConfigKnown || len(facts.Entries) == 0:
		case slices.ContainsFunc(facts.Entries, func(entry fleet.RunnerEntry) bool { return entry.TokenSHA256 == e.patient.RunnerToken }):
			same = append(same, vm)
		default:
			others = append(others, vm)
		}
	}
	return same, others
}
