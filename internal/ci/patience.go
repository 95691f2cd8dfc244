package ci

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// How long to wait between two tries: twice as long each time, at most
// longestPause.
const (
	firstPause   = time.Second
	longestPause = 15 * time.Second
)

// patience tries again what may work later.
type patience struct {
	limit  time.Duration // for one outage
	now    func() time.Time
	log    *joblog
	spread string // makes many jobs try at different moments
}

// try calls act until it succeeds, is refused for good, or has failed for
// longer than the limit; then it yields the last error. A failure is told when
// it begins and when its reason changes, not at each try. With reading, what
// is wrong inside the controller may pass too.
func (p *patience) try(ctx context.Context, reading bool, act func() error) error {
	var began time.Time
	told, pause := "", firstPause+p.offset()
	for first := true; ; first = false {
		err := act()
		if err == nil {
			if told != "" {
				p.log.line(p.stamp() + p.log.good("the controller answers again"))
			}
			return nil
		}
		code := fleet.CodeOf(err)
		if ctx.Err() != nil || forGood(err) || !fleet.Retryable(code) && (!reading || code != fleet.CodeInternal) {
			return err
		}
		if began.IsZero() {
			began = p.now()
		}
		if p.now().Sub(began) >= p.limit {
			return err
		}
		slowed := first && code == fleet.CodeRateLimited // once is no news: it was too fast
		if reason := reason(err); told != reason && !slowed {
			told = reason
			p.log.line(p.stamp() + p.log.alert("no answer yet") + ": " + reason + "; tries again for up to " + p.limit.String())
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
		pause = min(2*pause, longestPause)
	}
}

func (p *patience) stamp() string { return p.now().UTC().Format(clockFormat) + "  " }

// offset is less than a second, and the same for the same job.
func (p *patience) offset() time.Duration {
	sum := sha256.Sum256([]byte(p.spread))
	return time.Duration(binary.BigEndian.Uint16(sum[:])%1000) * time.Millisecond
}
