package engine_test

import (
	"fmt"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// combinations are all policies there are, with a hard cap at the cap and one
// beyond it.
func combinations() []fleet.DrainPolicy {
	var list []fleet.DrainPolicy
	for _, overrun := range []fleet.Overrun{fleet.OverrunProceed, fleet.OverrunWait, fleet.OverrunAbort} {
		for _, unreachable := range []fleet.Unreachable{fleet.UnreachableFail, fleet.UnreachableProceed} {
			for _, unproven := range []fleet.Unproven{fleet.UnprovenAbort, fleet.UnprovenProceed} {
				for _, hard := range []time.Duration{10 * time.Minute, 40 * time.Minute} {
					p := fleet.DefaultDrainPolicy()
					p.OnOverrun, p.Unreachable, p.OnUnproven, p.HardCap = overrun, unreachable, unproven, hard
					list = append(list, p)
				}
			}
		}
	}
	return list
}

// mishap is what goes wrong in a drain, and what must become of it by a policy.
type mishap struct {
	name    string
	happens func(*enginetest.World)
	// becomes says how the operation ends, by which verdict, and how long after
	// the stop its drain does.
	becomes func(fleet.DrainPolicy) (fleet.Phase, fleet.Verdict, time.Duration)
}

// timeUp is when the waiting for jobs and for proofs ends.
func timeUp(p fleet.DrainPolicy) time.Duration {
	if p.OnOverrun == fleet.OverrunWait {
		return p.HardCap
	}
	return p.Cap
}

func mishaps() []mishap {
	return []mishap{
		{
			"a job longer than any cap", func(w *enginetest.World) { w.Job("a", 42, 50*time.Minute) },
			func(p fleet.DrainPolicy) (fleet.Phase, fleet.Verdict, time.Duration) {
				if p.OnOverrun == fleet.OverrunAbort {
					return fleet.PhaseFailed, "", p.Cap
				}
				return fleet.PhaseSucceeded, fleet.VerdictOverrun, timeUp(p)
			},
		},
		{
			"a job that ends in half an hour", func(w *enginetest.World) { w.Job("a", 42, 30*time.Minute) },
			func(p fleet.DrainPolicy) (fleet.Phase, fleet.Verdict, time.Duration) {
				switch {
				case p.OnOverrun == fleet.OverrunAbort:
					return fleet.PhaseFailed, "", p.Cap
				case timeUp(p) > 30*time.Minute:
					return fleet.PhaseSucceeded, fleet.VerdictDrained, 30 * time.Minute
				default:
					return fleet.PhaseSucceeded, fleet.VerdictOverrun, p.Cap
				}
			},
		},
		{
			"a host that is lost", func(w *enginetest.World) { w.Job("a", 42, 50*time.Minute); w.VM("a").Cutoff = true },
			func(p fleet.DrainPolicy) (fleet.Phase, fleet.Verdict, time.Duration) {
				if p.Unreachable == fleet.UnreachableFail { // it waits for the host, to give intake back
					return fleet.PhaseRestoring, "", p.ReachDeadline
				}
				return fleet.PhaseSucceeded, fleet.VerdictUnreachable, p.ReachDeadline
			},
		},
		{
			"a GitLab that does not answer", func(w *enginetest.World) {
				w.GitLabDown = true
				w.Fences["create"] = func() { w.GitLabDown = false } // the gate asks it
			},
			func(p fleet.DrainPolicy) (fleet.Phase, fleet.Verdict, time.Duration) {
				if p.OnUnproven == fleet.UnprovenAbort {
					return fleet.PhaseFailed, "", timeUp(p)
				}
				return fleet.PhaseSucceeded, fleet.VerdictUnproven, timeUp(p)
			},
		},
	}
}

// setPolicy puts an operation under a policy, as control stores it.
func setPolicy(t *testing.T, w *enginetest.World, id string, p fleet.DrainPolicy) {
	t.Helper()
	if err := change(t, w, id, func(op *fleet.Operation) error { return op.SetPolicy(p, w.Now()) }); err != nil {
		t.Fatal(err)
	}
}

// change changes a stored operation by compare-and-set, as control does.
func change(t *testing.T, w *enginetest.World, id string, apply func(*fleet.Operation) error) error {
	t.Helper()
	for {
		op := w.Op(id)
		if err := apply(op); err != nil {
			return err
		}
		op.NotBefore = time.Time{}
		switch err := w.Store.UpdateOperation(t.Context(), op, nil, nil, nil); fleet.CodeOf(err) {
		case "":
			return nil
		case fleet.CodeConflict:
		default:
			t.Fatal(err)
		}
	}
}

// ways are where a policy may come from.
func ways() map[string]func(*enginetest.World, fleet.DrainPolicy) string {
	return map[string]func(*enginetest.World, fleet.DrainPolicy) string{
		"per fleet": func(w *enginetest.World, p fleet.DrainPolicy) string {
			w.Spec.Drain = p
			return w.Ask(fleet.KindRecreate, "a")
		},
		"per request": func(w *enginetest.World, p fleet.DrainPolicy) string {
			return w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy = p })
		},
		"on the live drain": func(w *enginetest.World, p fleet.DrainPolicy) string {
			return w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy = opposite(p) })
		},
	}
}

// opposite is another policy in everything.
func opposite(p fleet.DrainPolicy) fleet.DrainPolicy {
	other := fleet.DrainPolicy{
		Cap: time.Hour, OnOverrun: fleet.OverrunAbort, HardCap: 3 * time.Hour,
		Unreachable: fleet.UnreachableFail, ReachDeadline: time.Hour, OnUnproven: fleet.UnprovenAbort,
	}
	if p.OnOverrun == fleet.OverrunAbort {
		other.OnOverrun = fleet.OverrunProceed
	}
	if p.Unreachable == fleet.UnreachableFail {
		other.Unreachable = fleet.UnreachableProceed
	}
	if p.OnUnproven == fleet.UnprovenAbort {
		other.OnUnproven = fleet.UnprovenProceed
	}
	return other
}

// unreachable, on_unproven, hard_cap and every combination with the overrun
// policies; per fleet, per request, and on the live drain. Whatever goes wrong,
// what was said happens, when it was said, and nothing sooner.
func TestEveryPolicyDoesWhatItSaysWhereverItWasSet(t *testing.T) {
	for way, ask := range ways() {
		for _, m := range mishaps() {
			for _, p := range combinations() {
				name := fmt.Sprintf("%s/%s/unreachable=%s on_unproven=%s hard_cap=%s on_overrun=%s", m.name, way, p.Unreachable, p.OnUnproven, p.HardCap, p.OnOverrun)
				t.Run(name, func(t *testing.T) {
					w := enginetest.New("a")
					w.Job("a", 1, 20*time.Second)
					id := ask(w, p)
					for w.Op(id).Drain.StoppedAt.IsZero() {
						w.Run(time.Second)
					}
					m.happens(w)
					if w.Op(id).Request.Policy != p {
						setPolicy(t, w, id, p)
					}
					w.Run(time.Hour)
					m.judge(t, w, id, p)
				})
			}
		}
	}
}

func (m mishap) judge(t *testing.T, w *enginetest.World, id string, p fleet.DrainPolicy) {
	t.Helper()
	op := w.Op(id)
	phase, verdict, after := m.becomes(p)
	if op.Phase != phase || op.Drain.Verdict != verdict {
		t.Fatalf("%s by %q, want %s by %q\n%s", op.Phase, op.Drain.Verdict, phase, verdict, w.Story())
	}
	if op.Request.Policy != p {
		t.Fatalf("its policy is %+v", op.Request.Policy)
	}
	if waiver := op.Drain.Waiver; verdict.Waived() && (waiver == nil || waiver.Verdict != verdict) {
		t.Errorf("waiver %+v", waiver)
	}
	cut := verdict == fleet.VerdictOverrun || verdict == fleet.VerdictUnreachable
	if (len(w.Cut) > 0) != cut {
		t.Errorf("cut %v\n%s", w.Cut, w.Story())
	}
	if gave := phase == fleet.PhaseFailed; gave && !w.VM("a").Serving() && w.VM("a").Busy == 0 {
		t.Errorf("intake was not given back\n%s", w.Story())
	}
	ended := op.Drain.VerdictAt
	if verdict == "" {
		ended = drainOver(w, id)
	}
	if took := ended.Sub(op.Drain.StoppedAt); took < after-time.Second || took > after+time.Minute {
		t.Errorf("its drain ended %s after the stop, want %s\n%s", took, after, w.Story())
	}
}

// drainOver is when a drain was given up.
func drainOver(w *enginetest.World, id string) (at time.Time) {
	for _, f := range w.Store.Facts {
		if f.Operation == id && f.Kind == fleet.FactPhase && f.Text == string(fleet.PhaseRestoring) {
			at = f.At
		}
	}
	return at
}
