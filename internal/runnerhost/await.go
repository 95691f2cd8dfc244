package runnerhost

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// AwaitExit waits on the host. It returns at once if mainPID is not, or no
// longer, the unit's main process; with mainPID 0 it waits until the unit is
// down. A process id that is used again is not taken for the old process. The
// reading is of just after the end; nil says that waiting has ended, not why:
// Look tells.
func (h *Hosts) AwaitExit(ctx context.Context, t engine.Target, mainPID int, limit time.Duration) (*fleet.HostReading, error) {
	limit = min(limit, 10*time.Second)
	if limit <= 0 {
		return nil, nil
	}
	seconds := int((limit + time.Second - 1) / time.Second)
	waiting, cancel := context.WithTimeout(ctx, limit+time.Second)
	defer cancel()
	sent := h.o.Clock.Now()
	r, err := h.ask(waiting, t, scriptWait,
		variable{"main_pid", fmt.Sprint(mainPID)}, variable{"limit", fmt.Sprint(seconds)})
	switch {
	case err != nil && waiting.Err() != nil && ctx.Err() == nil:
		return nil, nil // limit has passed
	case err != nil:
		return nil, err
	case r.broken != nil:
		return nil, r.broken
	}
	waited, ok := readWaited(r.answer)
	if !ok {
		return nil, nil
	}
	takenAt := sent.Add(waited)
	if now := h.o.Clock.Now(); takenAt.After(now) {
		takenAt = now
	}
	reading := readReading(t, takenAt, r.answer)
	return &reading, nil
}

// readWaited yields how long after the script's beginning the host was read, by
// the host's own uptime: added to when the script was sent, it is no later than
// the reading.
func readWaited(a answer) (time.Duration, bool) {
	began, err1 := strconv.ParseFloat(a.one("wait.began"), 64)
	ended, err2 := strconv.ParseFloat(a.one("wait.ended"), 64)
	if err1 != nil || err2 != nil || ended < began || ended-began > 60 {
		return 0, false
	}
	return time.Duration((ended - began) * float64(time.Second)), true
}
