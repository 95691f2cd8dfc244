package runnerhost

import (
	"context"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// StopIntake obeys an OrderStop: see scripts/stop.sh.
func (h *Hosts) StopIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.obey(ctx, t, o, fleet.OrderStop, scriptStop)
}

// StartIntake obeys an OrderStart: see scripts/start.sh.
func (h *Hosts) StartIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.obey(ctx, t, o, fleet.OrderStart, scriptStart)
}

// ReleaseIntake obeys an OrderRelease: see scripts/release.sh. A unit that is
// active, inactive or failed, with no job of systemd's pending, can be released.
func (h *Hosts) ReleaseIntake(ctx context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.obey(ctx, t, o, fleet.OrderRelease, scriptRelease)
}

// EndJobs obeys an OrderEnd: see scripts/end.sh. A process that is gone already
// is no error.
func (h *Hosts) EndJobs(ctx context.Context, t engine.Target, o fleet.Order) error {
	_, err := h.give(ctx, t, o, fleet.OrderEnd, scriptEnd)
	return err
}

// obey gives an order and yields the reading that its script ends with.
func (h *Hosts) obey(ctx context.Context, t engine.Target, o fleet.Order, verb fleet.OrderVerb, s script) (*fleet.HostReading, error) {
	takenAt := h.o.Clock.Now()
	a, err := h.give(ctx, t, o, verb, s)
	if err != nil {
		return nil, err
	}
	reading := readReading(t, takenAt, a)
	return &reading, nil
}

func (h *Hosts) give(ctx context.Context, t engine.Target, o fleet.Order, verb fleet.OrderVerb, s script) (answer, error) {
	if err := checkOrder(o, verb); err != nil {
		return nil, err
	}
	r, err := h.ask(ctx, t, s, orderVariables(o)...)
	if err != nil {
		return nil, err
	}
	if r.broken != nil {
		return nil, r.broken
	}
	if reason := r.answer.one("refused"); reason != "" {
		return nil, refused(t, h.o.Settings, o, reason, r.answer)
	}
	return r.answer, nil
}

// refused is the error for an order that a script refused. The reasons are
// those of `refuse` in scripts/.
func refused(t engine.Target, s fleet.HostSettings, o fleet.Order, reason string, a answer) error {
	act, detail := "the order to "+string(o.Verb), a.one("detail")
	switch reason {
	case "foreign":
		return fleet.Errorf(fleet.CodeConflict, "%s: the host is drained by somebody else: %s", t.Ref, detail).
			WithHint("end that drain where it was begun, or take it over with --take-over")
	case "late":
		obeyed, _ := a.number("obeyed")
		return fleet.Errorf(fleet.CodeConflict, "%s: %s, number %d of %s, came too late and did nothing: %w", t.Ref, act, o.Number, o.Operation, fleet.Late{Obeyed: obeyed, Of: detail}).
			WithHint("if this journal does not know that operation (it was restored from a backup, or the VM had another name), and no other Sluice works on the host, ask again with --take-over")
	case "boot":
		return fleet.Errorf(fleet.CodeConflict, "%s: the host was rebooted, %s did nothing: %s", t.Ref, act, detail)
	case "busy":
		return fleet.Errorf(fleet.CodeConflict, "%s: %s has to wait: %s", t.Ref, act, detail)
	case "damaged":
		return fleet.Errorf(fleet.CodeConflict, "%s: %s did nothing: %s", t.Ref, act, detail).
			WithHint("somebody changed that file; remove it on the host once no drain is in progress there")
	case "overridden":
		return fleet.Errorf(fleet.CodeInvalid, "%s: another drop-in wins over the drain's, so a stop would cut jobs; nothing was stopped: %s", t.Ref, detail).
			WithHint("take these settings out of that drop-in, or give it a name that sorts before zz-sluice-drain.conf")
	case "unit":
		return fleet.Errorf(fleet.CodeInvalid, "%s: %s did nothing: %s", t.Ref, act, detail).WithHint("set host.unit of the fleet to the runner's unit")
	case "sudo":
		return fleet.Errorf(fleet.CodeForbidden, "%s: sudo refuses `%s` to %s: %s", t.Ref, detail, s.User, act+" did nothing further").
			WithHint("install deploy/sudoers/sluice on the host (visudo -cf checks it)")
	case "lock", "systemd":
		return fleet.Errorf(fleet.CodeUnavailable, "%s: %s did nothing: %s", t.Ref, act, detail)
	default:
		return fleet.Errorf(fleet.CodeUnavailable, "%s: %s failed on the host: %s", t.Ref, act, detail)
	}
}
