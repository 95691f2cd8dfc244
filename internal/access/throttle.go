package access

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of one caller. A follower polls every few seconds, a page a little
// more often; who asks for changes asks for many VMs at once.
const (
	requestRate  = 20 // per second
	requestBurst = 200
	changeRate   = 1 // per second
	changeBurst  = 30
)

// Limits of failures from one address. Whoever sends something good is not
// slowed by a neighbour behind the same address: only failures are.
const (
	failureRate  = 0.2 // per second
	failureBurst = 10
)

// maxKept bounds how many callers are remembered at once.
const maxKept = 10_000

// Throttle limits requests by caller and slows failures by address. It is safe
// for concurrent use.
type Throttle struct {
	clock    interface{ Now() time.Time }
	mu       sync.Mutex
	requests buckets
	changes  buckets
	failures buckets
}

// NewThrottle makes one.
func NewThrottle(clock interface{ Now() time.Time }) *Throttle {
	return &Throttle{
		clock:    clock,
		requests: buckets{limit: requestRate, burst: requestBurst},
		changes:  buckets{limit: changeRate, burst: changeBurst},
		failures: buckets{limit: failureRate, burst: failureBurst},
	}
}

// Admit counts a request of a caller. Errors: *Refusal.
func (t *Throttle) Admit(caller string, change bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	ok := t.requests.take(caller, now)
	if ok && change {
		ok = t.changes.take(caller, now)
	}
	if ok {
		return nil
	}
	return refuse(ReasonRate, "too many requests from "+shown(caller), "wait a second, and name all VMs in one request")
}

// Failed counts a failure from an address and says whether there were too
// many: then it is to be answered slowly.
func (t *Throttle) Failed(address string) (tooMany bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.failures.take(address, t.clock.Now())
}

// buckets are token buckets by name.
type buckets struct {
	limit rate.Limit
	burst int
	named map[string]*rate.Limiter
}

func (b *buckets) take(name string, now time.Time) bool {
	bucket := b.named[name]
	if bucket == nil {
		b.forget(now)
		bucket = rate.NewLimiter(b.limit, b.burst)
		b.named[name] = bucket
	}
	return bucket.AllowN(now, 1)
}

// forget makes room: a full bucket is as good as none. If all are in use, all
// are forgotten: rather that than grow without end.
func (b *buckets) forget(now time.Time) {
	if b.named != nil && len(b.named) < maxKept {
		return
	}
	kept := map[string]*rate.Limiter{}
	for name, bucket := range b.named {
		if bucket.TokensAt(now) < float64(b.burst) {
			kept[name] = bucket
		}
	}
	if len(kept) >= maxKept {
		kept = map[string]*rate.Limiter{}
	}
	b.named = kept
}
