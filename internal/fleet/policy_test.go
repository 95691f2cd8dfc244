package fleet

import (
	"strings"
	"testing"
	"time"
)

// cases.md T2: gentle by default, and replaceable.
func TestDefaultPolicyIsValidAndSaysItself(t *testing.T) {
	p := DefaultDrainPolicy()
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if got := p.String(); got != "cap 10m0s, then proceed" {
		t.Error(got)
	}
}

func TestPolicyThatCannotMeanWhatItSaysIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*DrainPolicy)
		want   string
	}{
		"overrun":      {func(p *DrainPolicy) { p.OnOverrun = "explode" }, `on_overrun "explode" is not known (use proceed, wait or abort)`},
		"unreachable":  {func(p *DrainPolicy) { p.Unreachable = "" }, `unreachable "" is not known (use fail or proceed)`},
		"unproven":     {func(p *DrainPolicy) { p.OnUnproven = "wait" }, `on_unproven "wait" is not known (use abort or proceed)`},
		"no cap":       {func(p *DrainPolicy) { p.Cap = 0 }, "cap 0s is not positive (to skip the drain use delete --no-drain)"},
		"no reach":     {func(p *DrainPolicy) { p.ReachDeadline = -time.Second }, "reach_deadline -1s is not positive (the default is 10m)"},
		"hard cap":     {func(p *DrainPolicy) { p.OnOverrun, p.HardCap = OverrunWait, time.Minute }, "hard_cap 1m0s is shorter than cap 10m0s (raise hard_cap)"},
		"hard cap off": {func(p *DrainPolicy) { p.HardCap = 0 }, ""},
	} {
		p := DefaultDrainPolicy()
		test.change(&p)
		err := p.Validate()
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestWaiversAreNoProofs(t *testing.T) {
	waived := map[Verdict]bool{VerdictOverrun: true, VerdictUnreachable: true, VerdictUnproven: true, VerdictSkipped: true}
	for _, v := range []Verdict{
		VerdictDrained, VerdictDirty, VerdictOff, VerdictAbsent, VerdictNever,
		VerdictOverrun, VerdictUnreachable, VerdictUnproven, VerdictSkipped,
	} {
		if v.Waived() != waived[v] {
			t.Errorf("%s: waived %t", v, v.Waived())
		}
	}
}

func TestFleetKnowsItsMembers(t *testing.T) {
	spec := Spec{VMs: []string{"runner-01", "runner-02"}}
	if !spec.Has("runner-02") || spec.Has("runner-2") || spec.Has("") {
		t.Error("membership goes by the whole name")
	}
}
