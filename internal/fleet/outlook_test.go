package fleet

import (
	"strings"
	"testing"
	"time"
)

// What a person is told of a deadline is what the table does at that moment,
// if nothing else changes: not a moment earlier, and never a word about a
// moment that decides nothing.
func TestTheOutlookIsWhatTheTableDoesAtThatMomentOverTheCrossProduct(t *testing.T) {
	t.Parallel()
	a, step := newAxes(), 997 // a prime, so that every digit takes every value
	promised := 0
	for i, host := range hostProduct() {
		for n := i; n < a.size(); n += step {
			w := a.world(host, n)
			s := w.snapshot(readings{host: host.reading(), gitlab: a.gitlabOf[w.gitlab], provider: a.providerOf[w.provider]})
			d := Decide(&s)
			at, next := s.Outlook(d)
			if at.IsZero() {
				if later := decideAt(s, s.Now.Add(100*24*time.Hour)); !sameAct(d, later) {
					t.Fatalf("%+v:\n  no moment is promised; now %s\n  later %s", w, d.short(), later.short())
				}
				continue
			}
			promised++
			if !at.After(s.Now) || !sameAct(d, decideAt(s, at.Add(-time.Nanosecond))) || sameAct(d, next) {
				t.Fatalf("%+v:\n  now %s\n  at %s %s", w, d.short(), at, next.short())
			}
			if got := decideAt(s, at); got != next {
				t.Fatalf("%+v:\n  promised %s\n  comes %s", w, next.short(), got.short())
			}
			for _, kind := range Kinds() {
				if next.Then(kind, s.Policy) == "" {
					t.Fatalf("%+v: nothing is said of %s", w, next.short())
				}
			}
		}
	}
	if promised < 10_000 {
		t.Errorf("only %d outlooks were looked at", promised)
	}
}

func decideAt(s Snapshot, at time.Time) Decision {
	s.Now = at
	return Decide(&s)
}

// A person reads it in `op show`: until when, then what.
func TestTheOutlookSaysWhatHappensThen(t *testing.T) {
	good := worldWords{
		host: hostWords{answered: true, unit: "inactive", result: "success", boot: "same", dropIn: true, containers: "none"},
		cap:  "inside", gitlab: "idle", provider: "running",
		overrun: OverrunProceed, unreachable: UnreachableFail, unproven: UnprovenAbort,
	}
	runs := func(w *worldWords) { w.host.unit, w.host.pid = "deactivating", true }
	for name, test := range map[string]struct {
		change func(*worldWords)
		in     time.Duration
		want   string
	}{
		"a job":              {runs, time.Nanosecond, "the running job is ended and the recreate goes on"},
		"a job, abort":       {func(w *worldWords) { runs(w); w.overrun = OverrunAbort }, time.Nanosecond, "intake is restored and the operation fails"},
		"a job, wait":        {func(w *worldWords) { runs(w); w.overrun = OverrunWait }, time.Nanosecond, "it is alerted and waits on, up to 4h0m0s in all"},
		"waits on":           {func(w *worldWords) { runs(w); w.overrun, w.cap = OverrunWait, "at the cap" }, 4*time.Hour - 10*time.Minute, "the running job is ended"},
		"no host":            {func(w *worldWords) { w.host, w.silence = hostWords{}, "short" }, time.Nanosecond, "intake is restored"},
		"no host, proceed":   {func(w *worldWords) { w.host, w.silence, w.unreachable = hostWords{}, "short", UnreachableProceed }, time.Nanosecond, "(unreachable: proceed) the recreate goes on"},
		"GitLab out":         {func(w *worldWords) { w.gitlab = "error" }, time.Nanosecond, "intake is restored"},
		"GitLab out, goes":   {func(w *worldWords) { w.gitlab, w.unproven = "error", UnprovenProceed }, time.Nanosecond, "(on_unproven: proceed) the recreate goes on"},
		"result on its way":  {func(w *worldWords) { w.gitlab, w.stopped = "running", "short" }, time.Nanosecond, "the orphan watch takes the job over"},
		"ended badly":        {func(w *worldWords) { w.gitlab, w.stopped, w.host.result = "running", "short", "exit-code" }, time.Nanosecond, "counts as cut by somebody else"},
		"leftovers":          {func(w *worldWords) { w.host.containers, w.left = "some", "short" }, time.Nanosecond, "what is left is reported and the recreate goes on"},
		"nothing is awaited": {func(*worldWords) {}, 0, ""},
	} {
		w := good
		test.change(&w)
		s := w.snapshot(readings{w.host.reading(), gitlabReadings()[w.gitlab], providerReadings()[w.provider]})
		at, next := s.Outlook(Decide(&s))
		if test.in == 0 {
			if !at.IsZero() {
				t.Errorf("%s: promises %s at %s", name, next.short(), at)
			}
			continue
		}
		if got := next.Then(KindRecreate, s.Policy); at.Sub(s.Now) != test.in || !strings.Contains(got, test.want) {
			t.Errorf("%s: in %s %q, want in %s %q", name, at.Sub(s.Now), got, test.in, test.want)
		}
	}
}
