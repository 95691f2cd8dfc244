package fleet

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// inMidDrain is a recreate whose intake was stopped at noon, with the default
// policy and what is changed of it.
func inMidDrain(change ...func(*Operation)) *Operation {
	op := &Operation{ID: "op-1", Fleet: "f", VM: "a", Kind: KindRecreate, Phase: PhaseDraining, Request: Request{Policy: DefaultDrainPolicy()}}
	op.Order.Verb = OrderStop
	op.Drain = DrainState{StoppedAt: noon, Deadline: noon.Add(10 * time.Minute), HardCap: noon.Add(4 * time.Hour)}
	for _, c := range change {
		c(op)
	}
	return op
}

// Promise 8: a change is possible until the drain has a verdict or the delete is
// committed, and refused with the reason after that.
func TestADrainCanBeChangedUntilItHasAVerdictOrTheDeleteIsCommitted(t *testing.T) {
	waived := func(v Verdict) func(*Operation) {
		return func(op *Operation) {
			op.Drain.Verdict, op.Drain.Waiver = v, &Waiver{Verdict: v, By: "policy: cap 10m0s, then proceed", At: noon}
		}
	}
	for name, c := range map[string]struct {
		change func(*Operation)
		says   string // "" = it can be changed
	}{
		"queued":                      {func(op *Operation) { op.Phase, op.Drain = PhaseQueued, DrainState{} }, ""},
		"in preflight":                {func(op *Operation) { op.Phase, op.Drain = PhasePreflight, DrainState{} }, ""},
		"draining":                    {func(*Operation) {}, ""},
		"past the cap":                {func(op *Operation) { op.Drain.Overran = true; op.Drain.Deadline = noon }, ""},
		"a drain":                     {func(op *Operation) { op.Kind = KindDrain }, ""},
		"an undrain":                  {func(op *Operation) { op.Kind, op.Phase = KindUndrain, PhaseQueued }, "undrain operations drain nothing"},
		"a create":                    {func(op *Operation) { op.Kind, op.Phase = KindCreate, PhaseQueued }, "create operations drain nothing"},
		"ended":                       {func(op *Operation) { op.Phase = PhaseSucceeded }, "ended already: succeeded"},
		"restoring":                   {func(op *Operation) { op.Phase = PhaseRestoring }, "giving intake back"},
		"canceled":                    {func(op *Operation) { op.Canceled = true }, "giving intake back"},
		"proven":                      {func(op *Operation) { op.Phase, op.Drain.Verdict = PhaseDeleting, VerdictDrained }, "ended already (drained)"},
		"overrun, jobs being ended":   {waived(VerdictOverrun), "without a proof (overrun, policy: cap 10m0s, then proceed)"},
		"overrun, before the intent":  {func(op *Operation) { waived(VerdictOverrun)(op); op.Phase = PhaseDeleting }, "without a proof (overrun"},
		"unreachable":                 {waived(VerdictUnreachable), "without a proof (unreachable"},
		"unproven":                    {waived(VerdictUnproven), "without a proof (unproven"},
		"skipped":                     {waived(VerdictSkipped), "skipped already"},
		"asked for without a drain":   {func(op *Operation) { op.Phase, op.Request.NoDrain = PhaseQueued, true }, "skipped already"},
		"the delete is committed":     {func(op *Operation) { op.Phase, op.Delete.IntentAt = PhaseDeleting, noon }, "committed, there is no way back"},
		"drained anew, but committed": {func(op *Operation) { op.Delete.IntentAt = noon }, "committed, there is no way back"},
		"creating":                    {func(op *Operation) { op.Phase, op.Delete.IntentAt = PhaseCreating, noon }, "committed"},
		"verifying":                   {func(op *Operation) { op.Phase = PhaseVerifying }, "its drain is over"},
	} {
		t.Run(name, func(t *testing.T) {
			acts := map[string]func(*Operation) error{
				"extend":     func(op *Operation) error { return op.Extend(Extension{By: time.Hour}, noon.Add(time.Minute)) },
				"set-policy": func(op *Operation) error { return op.SetPolicy(op.Request.Policy, noon.Add(time.Minute)) },
			}
			for what, act := range acts {
				op := inMidDrain(c.change)
				err := act(op)
				switch {
				case c.says == "" && err != nil:
					t.Errorf("%s: %v", what, err)
				case c.says != "" && (CodeOf(err) != CodeConflict || !strings.Contains(err.Error(), c.says) || HintOf(err) == ""):
					t.Errorf("%s: %v, hint %q", what, err, HintOf(err))
				}
			}
		})
	}
}

// design.md section 4.4: the cap is an absolute moment, and moves on a live
// drain, also when it has passed.
func TestAnExtensionMovesTheCapAndNeverLeavesTheHardCapBehind(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	const m, h = time.Minute, time.Hour
	for name, c := range map[string]struct {
		now            time.Duration
		e              Extension
		deadline, hard time.Duration
	}{
		"by, inside the cap":                {2 * m, Extension{By: 10 * m}, 20 * m, 4*h + 10*m},
		"by, when the cap has passed":       {30 * m, Extension{By: 10 * m}, 40 * m, 4*h + 10*m},
		"by, when the hard cap has passed":  {5 * h, Extension{By: 10 * m}, 5*h + 10*m, 5*h + 10*m},
		"to, before the hard cap":           {2 * m, Extension{To: at(2 * h)}, 2 * h, 4 * h},
		"to, beyond the hard cap":           {2 * m, Extension{To: at(6 * h)}, 6 * h, 6 * h},
		"to, when the cap has passed":       {30 * m, Extension{To: at(31 * m)}, 31 * m, 4 * h},
		"cap":                               {2 * m, Extension{Cap: 30 * m}, 30 * m, 4 * h},
		"cap, when the old one has passed":  {20 * m, Extension{Cap: 30 * m}, 30 * m, 4 * h},
		"to, in another zone, to the milli": {2 * m, Extension{To: at(11*m + 300*time.Millisecond).In(time.FixedZone("x", 3600))}, 11*m + 300*time.Millisecond, 4 * h},
	} {
		t.Run(name, func(t *testing.T) {
			op := inMidDrain(func(op *Operation) { op.Drain.Overran = c.now >= 10*m })
			if err := op.Extend(c.e, at(c.now)); err != nil {
				t.Fatal(err)
			}
			d, p := op.Drain, op.Request.Policy
			if d.Deadline != at(c.deadline) || d.HardCap != at(c.hard) || d.Overran {
				t.Errorf("deadline %s, hard cap %s, overran %t", d.Deadline, d.HardCap, d.Overran)
			}
			if p.Cap != c.deadline.Round(time.Second) || p.HardCap != c.hard || p.Validate() != nil {
				t.Errorf("the policy says %s and %s", p.Cap, p.HardCap)
			}
		})
	}
}

func TestAnExtensionThatIsNoneIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		now  time.Duration
		e    Extension
		code Code
		says string
	}{
		"sooner":            {time.Minute, Extension{Cap: 5 * time.Minute}, CodeInvalid, "passes at 2026-11-30T12:10:00Z already"},
		"the same":          {time.Minute, Extension{To: noon.Add(10 * time.Minute)}, CodeInvalid, "already"},
		"later, and passed": {time.Hour, Extension{Cap: 30 * time.Minute}, CodeInvalid, "has passed already"},
	} {
		op := inMidDrain()
		before := *op
		err := op.Extend(c.e, noon.Add(c.now))
		if CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || HintOf(err) == "" || op.Drain.Deadline != before.Drain.Deadline {
			t.Errorf("%s: %v, deadline %s", name, err, op.Drain.Deadline)
		}
	}
}

// The cap counts from a stop that has not been given: only its length can move.
func TestBeforeTheStopAnExtensionMovesTheLengthOfTheCap(t *testing.T) {
	queued := func() *Operation {
		return inMidDrain(func(op *Operation) { op.Phase, op.Drain = PhaseQueued, DrainState{} })
	}
	for _, c := range []struct {
		e         Extension
		cap, hard time.Duration
	}{
		{Extension{By: 10 * time.Minute}, 20 * time.Minute, 4*time.Hour + 10*time.Minute},
		{Extension{Cap: time.Hour}, time.Hour, 4 * time.Hour},
		{Extension{Cap: 5 * time.Hour}, 5 * time.Hour, 5 * time.Hour},
	} {
		op := queued()
		if err := op.Extend(c.e, noon); err != nil || op.Request.Policy.Cap != c.cap || op.Request.Policy.HardCap != c.hard || !op.Drain.Deadline.IsZero() {
			t.Errorf("%+v: %+v, %v", c.e, op.Request.Policy, err)
		}
	}
	if err := queued().Extend(Extension{To: noon.Add(time.Hour)}, noon); CodeOf(err) != CodeConflict || !strings.Contains(HintOf(err), "--cap") {
		t.Errorf("%v", err)
	}
	if err := queued().Extend(Extension{Cap: time.Minute}, noon); CodeOf(err) != CodeInvalid {
		t.Errorf("%v", err)
	}
}

func TestAnotherPolicyMovesTheDeadlinesThatItNames(t *testing.T) {
	op := inMidDrain(func(op *Operation) {
		op.Drain.Deadline = noon.Add(25 * time.Minute)
		op.Request.Policy.Cap = 25 * time.Minute
	})
	p := op.Request.Policy
	p.OnOverrun, p.HardCap = OverrunWait, time.Hour
	if err := op.SetPolicy(p, noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if d := op.Drain; d.Deadline != noon.Add(25*time.Minute) || d.HardCap != noon.Add(time.Hour) || op.Request.Policy != p {
		t.Errorf("%+v", d)
	}
	p.Cap = 2 * time.Hour
	if err := op.SetPolicy(p, noon); CodeOf(err) != CodeInvalid || op.Request.Policy.Cap != 25*time.Minute {
		t.Errorf("a cap beyond the hard cap under wait: %v", err)
	}
	p.Cap = time.Minute // shorter: it passes at once
	if err := op.SetPolicy(p, noon.Add(5*time.Minute)); err != nil || op.Drain.Deadline != noon.Add(time.Minute) {
		t.Errorf("%v, %s", err, op.Drain.Deadline)
	}
	p.Unreachable = "maybe"
	if err := op.SetPolicy(p, noon); CodeOf(err) != CodeInvalid {
		t.Errorf("%v", err)
	}
}

// design.md section 5: a skipped drain stands on a waiver: which row, who, when.
func TestASkippedDrainStandsOnAWaiverOfWhoAskedForIt(t *testing.T) {
	op := inMidDrain()
	changed, err := op.SkipDrain("ada", noon)
	if w := op.Drain.Waiver; err != nil || !changed || op.Drain.Verdict != VerdictSkipped || *w != (Waiver{Verdict: VerdictSkipped, By: "ada", At: noon}) {
		t.Fatalf("%t, %v, %+v", changed, err, op.Drain)
	}
	if changed, err = op.SkipDrain("bob", noon); changed || err != nil || op.Drain.Waiver.By != "ada" {
		t.Errorf("twice: %t, %v, %+v", changed, err, op.Drain.Waiver)
	}
	op = inMidDrain(func(op *Operation) { op.Kind = KindDrain })
	if _, err = op.SkipDrain("ada", noon); CodeOf(err) != CodeConflict || !strings.Contains(HintOf(err), "set-policy") {
		t.Errorf("of a drain: %v", err)
	}
	op = inMidDrain(func(op *Operation) { op.Delete.IntentAt = noon })
	if _, err = op.SkipDrain("ada", noon); CodeOf(err) != CodeConflict {
		t.Errorf("after the intent: %v", err)
	}
}
