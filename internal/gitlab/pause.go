package gitlab

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// How long to leave GitLab alone after a 429 that does not say for how long,
// and at most.
const (
	pauseDefault = 5 * time.Second
	pauseMost    = 10 * time.Minute
)

// PausedError says that GitLab asked to be left alone and that nothing was sent.
type PausedError struct{ Left time.Duration }

// Error says for how long.
func (e *PausedError) Error() string {
	return fmt.Sprintf("its rate limit was hit (429) and it is left alone for %s more", e.Left.Round(time.Second))
}

// pause is a transport that honours Retry-After for all who share it: one
// answer that says "later" keeps everybody away until then.
type pause struct {
	next http.RoundTripper
	now  func() time.Time

	mu    sync.Mutex
	until time.Time
}

// RoundTrip implements http.RoundTripper. Errors: *PausedError, or next's.
func (p *pause) RoundTrip(req *http.Request) (*http.Response, error) {
	if left := p.left(); left > 0 {
		return nil, &PausedError{Left: left}
	}
	resp, err := p.next.RoundTrip(req)
	if err == nil {
		p.note(resp)
	}
	return resp, err
}

func (p *pause) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until.Sub(p.now())
}

func (p *pause) note(resp *http.Response) {
	wait := retryAfter(resp, p.now())
	if wait <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := p.now().Add(wait); until.After(p.until) {
		p.until = until
	}
}

// retryAfter reads how long to stay away: of a 429 always something, of a 503
// only what it says (RFC 9110, 10.2.3). Zero: no wish. A wish that is none, or
// one for the past, must not make a loop of a limit that was hit.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	limited := resp.StatusCode == http.StatusTooManyRequests
	if !limited && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	wait := wished(resp.Header.Get("Retry-After"), now)
	if limited && wait <= 0 {
		return pauseDefault
	}
	return min(max(wait, 0), pauseMost)
}

// wished reads the header's two forms; zero where it is neither.
func wished(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(n, uint64(pauseMost/time.Second))) * time.Second //nolint:gosec // bounded
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now)
	}
	return 0
}
