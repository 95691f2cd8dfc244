package control

import (
	"context"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Change is what somebody wants of a drain that is under way: exactly one of
// Extend, Policy and Skip.
type Change struct {
	Extend *fleet.Extension
	Policy *PolicyPatch
	Skip   bool
	By     fleet.Actor `json:"-"`
	// Key is an Idempotency-Key: a repeat of the same change yields the operation
	// as it is. "" = none.
	Key      string `json:"-"`
	KeyScope string `json:"-"` // keeps the keys of different callers apart
	// Judge may refuse what the change comes to, before it is stored; nil = nobody
	// does. It may be asked several times.
	Judge func(after *fleet.Operation) error `json:"-"`
}

func (c *Control) changeDrain(ctx context.Context, id string, ch Change) (*fleet.Operation, error) {
	if err := ch.check(); err != nil {
		return nil, err
	}
	key := ch.key()
	return c.change(ctx, id, ch.By, func(op *fleet.Operation) (string, []fleet.Fact, error) {
		if known, err := repeated(op, key); known || err != nil {
			return "", nil, err
		}
		before, now := *op, c.Clock.Now()
		also, err := ch.apply(op, now)
		if err != nil {
			return "", nil, err
		}
		if ch.Judge != nil {
			if err := ch.Judge(op); err != nil {
				return "", nil, err
			}
		}
		what := ch.words(&before, op)
		if what == "" && key.Key == "" {
			return "", nil, nil
		}
		if what == "" { // its repeat must find the key, whatever others change meanwhile
			what = "a change that changes nothing was asked for"
		}
		op.NotBefore = time.Time{} // whatever backs off is looked at under the new rules
		if op.Phase == fleet.PhaseQueued && ch.By.From != FromWebhook {
			op.Joined = ch.By // who changes it relies on it
		}
		remember(op, key)
		return what, also, nil
	})
}

// check wants one change. Errors: CodeInvalid.
func (ch *Change) check() error {
	n := 0
	for _, is := range []bool{ch.Extend != nil, ch.Policy != nil, ch.Skip} {
		if is {
			n++
		}
	}
	if n != 1 {
		return fleet.Errorf(fleet.CodeInvalid, "%d changes in one request", n).WithHint("ask for one: extend, policy, or skip-drain")
	}
	if ch.Policy != nil && *ch.Policy == (PolicyPatch{}) {
		return fleet.Errorf(fleet.CodeInvalid, "the policy names nothing to change").WithHint("name cap, on_overrun, hard_cap, unreachable, reach_deadline or on_unproven")
	}
	if e := ch.Extend; e != nil {
		return checkExtension(*e)
	}
	return nil
}

func checkExtension(e fleet.Extension) error {
	n := 0
	for _, is := range []bool{e.By != 0, !e.To.IsZero(), e.Cap != 0} {
		if is {
			n++
		}
	}
	switch {
	case n != 1:
		return fleet.Errorf(fleet.CodeInvalid, "an extension is by a length, to a moment, or to a cap: %d of these are given", n).WithHint("give one of by, to and cap")
	case e.By < 0 || e.Cap < 0:
		return fleet.Errorf(fleet.CodeInvalid, "an extension by %s is none", e.By+e.Cap).WithHint("give a length above zero, such as 10m")
	default:
		return nil
	}
}

// apply changes the operation by the rules of package fleet, which say what may
// be changed when.
func (ch *Change) apply(op *fleet.Operation, now time.Time) (also []fleet.Fact, err error) {
	switch {
	case ch.Extend != nil:
		return nil, op.Extend(*ch.Extend, now)
	case ch.Policy != nil:
		return nil, op.SetPolicy(ch.Policy.Apply(op.Request.Policy), now)
	}
	changed, err := op.SkipDrain(ch.By.Name, now)
	if err != nil || !changed || op.Phase != fleet.PhaseDraining { // preflight tells it otherwise
		return nil, err
	}
	return []fleet.Fact{{
		At: now, Operation: op.ID, Fleet: op.Fleet, VM: op.VM, Kind: fleet.FactWarning, Phase: op.Phase,
		Text: fmt.Sprintf("the drain is skipped at the request of %s: jobs on %s will be cut", ch.By.Name, op.Ref()),
	}}, nil
}

// words say what the change was, and what holds now; "" where nothing changed.
func (ch *Change) words(before, after *fleet.Operation) string {
	switch {
	case ch.Skip && before.SkipsDrain():
		return ""
	case ch.Skip:
		return "skipping the drain was asked for"
	case ch.Extend != nil:
		return fmt.Sprintf("an extension was asked for (%s, before: %s)", after.Limits(), before.Limits())
	default:
		if list := changes(before.Request.Policy, after.Request.Policy); list != "" {
			return fmt.Sprintf("another policy was asked for (%s; %s)", list, after.Limits())
		}
		return ""
	}
}
