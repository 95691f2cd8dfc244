package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// policyFlags are the flags that name every part of a drain policy; what none
// names stays as it is.
type policyFlags struct {
	cap, hardCap, reach              time.Duration
	onOverrun, unreachable, unproven string
}

func (o *policyFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&o.cap, "cap", 0, "how long jobs may go on after intake was stopped")
	f.StringVar(&o.onOverrun, "on-overrun", "", "when the cap passes with a job running: `POLICY` is proceed, wait or abort")
	f.DurationVar(&o.hardCap, "hard-cap", 0, "how long on-overrun wait waits, from the same moment")
	f.StringVar(&o.unreachable, "unreachable", "", "when the host is out of reach for reach-deadline: `POLICY` is fail or proceed")
	f.DurationVar(&o.reach, "reach-deadline", 0, "how long the host may be out of reach without a break")
	f.StringVar(&o.unproven, "on-unproven", "", "when the runner is gone at the cap and GitLab's answer is unknown: `POLICY` is abort or proceed")
	for name, words := range map[string][]string{"on-overrun": overrunWords, "unreachable": unreachableWords, "on-unproven": unprovenWords} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	}
}

var (
	overrunWords     = []string{"proceed", "wait", "abort"}
	unreachableWords = []string{"fail", "proceed"}
	unprovenWords    = []string{"abort", "proceed"}
)

// patch is what the flags that were given change. Errors: usage.
func (o *policyFlags) patch(cmd *cobra.Command) (*client.PolicyPatch, error) {
	for _, word := range []struct {
		flag, value string
		known       []string
	}{{"on-overrun", o.onOverrun, overrunWords}, {"unreachable", o.unreachable, unreachableWords}, {"on-unproven", o.unproven, unprovenWords}} {
		if cmd.Flags().Changed(word.flag) && !slices.Contains(word.known, word.value) {
			return nil, usage(fleet.Errorf(fleet.CodeInvalid, "--%s %q is not known", word.flag, word.value).WithHint("use %s", choice(word.known)))
		}
	}
	patch := &client.PolicyPatch{}
	for _, length := range []struct {
		flag  string
		value time.Duration
		to    **string
	}{{"cap", o.cap, &patch.Cap}, {"hard-cap", o.hardCap, &patch.HardCap}, {"reach-deadline", o.reach, &patch.ReachDeadline}} {
		if !cmd.Flags().Changed(length.flag) {
			continue
		}
		if length.value <= 0 {
			return nil, usage(fleet.Errorf(fleet.CodeInvalid, "--%s %s is not positive", length.flag, length.value))
		}
		*length.to = new(length.value.String())
	}
	set(&patch.OnOverrun, client.PolicyPatchOnOverrun(o.onOverrun))
	set(&patch.Unreachable, client.PolicyPatchUnreachable(o.unreachable))
	set(&patch.OnUnproven, client.PolicyPatchOnUnproven(o.unproven))
	return patch, nil
}

// choice is "a, b or c".
func choice(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// policyText is a policy in a line.
func policyText(is *client.Policy) string {
	overrun := is.OnOverrun
	if overrun == string(fleet.OverrunWait) {
		overrun += ", up to " + short(is.HardCap) + " in all"
	}
	return fmt.Sprintf("cap %s, then %s; host out of reach for %s: %s; GitLab unknown at the cap: %s",
		short(is.Cap), overrun, short(is.ReachDeadline), is.Unreachable, is.OnUnproven)
}
