package fleet

import (
	"fmt"
	"time"
)

// Extension is how somebody moves the cap of a drain that is under way: exactly
// one of the fields is set.
type Extension struct {
	By  time.Duration // later by this, and hard_cap with it
	To  time.Time     // to this moment
	Cap time.Duration // to this long after intake was stopped
}

// Changeable says whether the drain of an operation may still be changed: until
// it has a verdict, or the delete is committed (design.md section 3, promise 8).
// A stored verdict is not taken back: under a waiver the jobs have been told to
// end, or are about to be. Until the delete is committed a cancel is still
// possible then. Errors: CodeConflict.
func (o *Operation) Changeable() error {
	refuse := func(format string, args ...any) *Error {
		return Errorf(CodeConflict, "%s: %s", o.ID, fmt.Sprintf(format, args...)).WithHint("follow it with `sluice op watch %s`", o.ID)
	}
	switch verdict := o.Drain.Verdict; {
	case o.Phase.Finished():
		return refuse("it has ended already: %s", o.Phase).WithHint("`sluice op show %s` says how; ask anew if more is wanted", o.ID)
	case !o.Kind.Drains():
		return refuse("%s operations drain nothing: there is nothing to change", o.Kind)
	case !o.Delete.IntentAt.IsZero():
		return refuse("the delete of %s is committed, there is no way back", o.Ref())
	case o.Phase == PhaseRestoring || o.Canceled:
		return refuse("it is giving intake back: its drain is over").
			WithHint("ask anew when it has ended: `sluice op watch %s` follows it", o.ID)
	case o.SkipsDrain():
		return refuse("its drain is skipped already: nothing waits")
	case verdict.Waived():
		return refuse("its drain has ended already without a proof (%s, %s): jobs that run are being ended", verdict, o.Drain.Waiver.by()).
			WithHint("until the delete is committed, `sluice op cancel %s` gives intake back", o.ID)
	case verdict != "":
		return refuse("its drain has ended already (%s): nothing waits", verdict)
	case o.Phase == PhaseQueued, o.Phase == PhasePreflight, o.Phase == PhaseDraining:
		return nil
	default:
		return refuse("it is %s: its drain is over", o.Phase)
	}
}

// by names who gave a waiver.
func (w *Waiver) by() string {
	if w == nil {
		return "nobody said who"
	}
	return w.By
}

// SkipsDrain says whether somebody asked not to wait for jobs: with the request,
// or since.
func (o *Operation) SkipsDrain() bool {
	return o.Request.NoDrain || o.Drain.Verdict == VerdictSkipped
}

// Extend moves the cap. By moves hard_cap as far; To and Cap move hard_cap only
// where it would pass before the cap. A cap that has passed is counted from now,
// and the drain is not overrun any more.
//
// Errors: CodeConflict (see Changeable; To before intake is stopped, because no
// moment is counted from yet), CodeInvalid (no later than it is, or past).
func (o *Operation) Extend(e Extension, now time.Time) error {
	if err := o.Changeable(); err != nil {
		return err
	}
	p, d := &o.Request.Policy, &o.Drain
	if d.StoppedAt.IsZero() {
		return o.extendCap(e)
	}
	deadline, hard := d.Deadline, d.HardCap
	switch {
	case e.By > 0:
		deadline, hard = later(deadline, now).Add(e.By), later(hard, now).Add(e.By)
	case !e.To.IsZero():
		deadline = e.To.Round(0).UTC()
	default:
		deadline = d.StoppedAt.Add(e.Cap)
	}
	if !deadline.After(d.Deadline) {
		return tooSoon("%s: its cap passes at %s already", o.ID, moment(d.Deadline))
	}
	if !deadline.After(now) {
		return tooSoon("%s: %s has passed already", o.ID, moment(deadline))
	}
	if deadline.Sub(now) > mostAhead || hard.Sub(now) > mostAhead {
		return tooFar(o.ID)
	}
	d.Deadline, d.HardCap = deadline, later(hard, deadline)
	p.Cap, p.HardCap = d.afterStop(d.Deadline), d.afterStop(d.HardCap)
	o.notOverrun(now)
	return nil
}

// extendCap moves a cap that has not begun.
func (o *Operation) extendCap(e Extension) error {
	p := &o.Request.Policy
	limit, hard := e.Cap, p.HardCap
	switch {
	case !e.To.IsZero():
		return Errorf(CodeConflict, "%s: intake is not stopped yet, and the cap counts from that moment", o.ID).
			WithHint("extend it by a length, or to a length after the stop: `sluice op extend %s --cap 30m`", o.ID)
	case e.By > 0:
		limit, hard = p.Cap+e.By, p.HardCap+e.By
	}
	if limit > mostAhead || hard > mostAhead || limit < 0 || hard < 0 {
		return tooFar(o.ID)
	}
	if limit <= p.Cap {
		return tooSoon("%s: its cap is %s already", o.ID, p.Cap)
	}
	p.Cap, p.HardCap = limit, max(hard, limit)
	return nil
}

// mostAhead is the longest that a cap may be extended to.
const mostAhead = 366 * 24 * time.Hour

func tooFar(id string) error {
	return Errorf(CodeInvalid, "%s: its cap would pass more than a year from now", id).
		WithHint("extend it by less; it can be extended again, or `sluice op set-policy %s --on-overrun wait`", id)
}

func tooSoon(format string, args ...any) error {
	return Errorf(CodeInvalid, format, args...).
		WithHint("an extension makes it later; `sluice op set-policy ID --cap` also shortens it")
}

// SetPolicy puts the drain under another policy. Deadlines that have begun move
// with it: a cap that passes by that is an overrun at the next look. Errors:
// CodeConflict (see Changeable), CodeInvalid (DrainPolicy.Validate).
func (o *Operation) SetPolicy(p DrainPolicy, now time.Time) error {
	if err := o.Changeable(); err != nil {
		return err
	}
	if err := p.Validate(); err != nil {
		return err
	}
	before, d := o.Request.Policy, &o.Drain
	o.Request.Policy = p
	if d.StoppedAt.IsZero() {
		return nil
	}
	if p.Cap != before.Cap {
		d.Deadline = d.StoppedAt.Add(p.Cap)
	}
	if p.HardCap != before.HardCap {
		d.HardCap = d.StoppedAt.Add(p.HardCap)
	}
	d.HardCap = later(d.HardCap, d.Deadline)
	o.notOverrun(now)
	return nil
}

// SkipDrain lets the operation go on without waiting for jobs, by a waiver of
// whoever asks for that. The engine records the jobs that this cuts, tells the
// runner to end them, and deletes. Changed is false where it is skipped already.
//
// Errors: CodeConflict (see Changeable; a drain, after which nothing comes).
func (o *Operation) SkipDrain(by string, now time.Time) (changed bool, err error) {
	if o.SkipsDrain() && !o.Phase.Finished() && !o.Canceled && o.Phase != PhaseRestoring && o.Delete.IntentAt.IsZero() {
		return false, nil
	}
	if err := o.Changeable(); err != nil {
		return false, err
	}
	if !o.Kind.Deletes() {
		return false, Errorf(CodeConflict, "%s is a %s: nothing comes after it that could go on without it", o.ID, o.Kind).
			WithHint("`sluice op cancel %s` gives intake back; `sluice op set-policy %s --cap 1s --on-overrun proceed` ends its jobs", o.ID, o.ID)
	}
	o.Drain.Verdict, o.Drain.VerdictAt = VerdictSkipped, now
	o.Drain.StoppedPastCap = false // whatever was stopped before, the skip stops and ends once more
	o.Drain.Waiver = &Waiver{Verdict: VerdictSkipped, By: by, At: now}
	o.Ruling = &Ruling{At: now, Reason: "the drain is skipped at the request of " + by}
	return true, nil
}

// notOverrun takes an overrun back whose cap lies ahead again: it warns, counts
// and stops intake once more when that one passes.
func (o *Operation) notOverrun(now time.Time) {
	if o.Drain.Deadline.After(now) {
		o.Drain.Overran, o.Drain.StoppedPastCap = false, false
	}
}

// afterStop is how long after the stop a moment is, as a policy says it: in
// whole seconds, where it is that long. The moment itself is the truth.
func (d *DrainState) afterStop(at time.Time) time.Duration {
	length := at.Sub(d.StoppedAt)
	return max(length.Round(time.Second), min(length, time.Second))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Limits says for people when a drain ends at the latest: by its cap, and under
// OverrunWait by its hard cap.
func (o *Operation) Limits() string {
	p, d := o.Request.Policy, &o.Drain
	text := fmt.Sprintf("the cap is %s", p.Cap)
	if !d.Deadline.IsZero() {
		text += ", until " + moment(d.Deadline)
	}
	if p.OnOverrun != OverrunWait {
		return text
	}
	text += fmt.Sprintf("; hard_cap %s", p.HardCap)
	if !d.HardCap.IsZero() {
		text += ", until " + moment(d.HardCap)
	}
	return text
}
