package queue

import (
	"sync"
	"time"
)

// Pauses after failures: the first, doubled with each more, up to the last.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// subject is what a job is about.
type subject struct {
	kind string // "operation" or "chore"
	id   string
}

// key is the subject's key in a log line.
func (s subject) key() string {
	if s.kind == "operation" {
		return "op"
	}
	return s.kind
}

// place is one attempt that is running now. A poke makes it look again.
type place struct {
	poke chan struct{} // holds one
}

// desk is what this process knows of its own attempts. Nothing of it is
// needed after a crash.
type desk struct {
	mu       sync.Mutex
	places   map[subject]*place
	failures map[subject]int
	ours     map[subject]bool
}

func newDesk() *desk {
	return &desk{places: map[subject]*place{}, failures: map[subject]int{}, ours: map[subject]bool{}}
}

// begin opens a place. One that an attempt without an end still holds is
// no longer heard of.
func (d *desk) begin(about subject) *place {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &place{poke: make(chan struct{}, 1)}
	d.places[about] = p
	return p
}

// leave closes the place, unless a poke has come that nobody answered: false,
// and the attempt has to look again.
func (d *desk) leave(about subject, p *place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.places[about] == p && len(p.poke) > 0 {
		return false
	}
	d.close(about, p)
	return true
}

// drop closes the place whatever came.
func (d *desk) drop(about subject, p *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.close(about, p)
}

// remaining closes the place whatever came, and yields how long the job may
// rest: not at all after a poke.
func (d *desk) remaining(about subject, p *place, wait time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.close(about, p)
	if len(p.poke) > 0 {
		return 0
	}
	return max(wait, 0)
}

func (d *desk) close(about subject, p *place) {
	if d.places[about] == p {
		delete(d.places, about)
	}
}

// poke makes the running attempt look again; false = none is running.
func (d *desk) poke(about subject) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.places[about]
	if !ok {
		return false
	}
	select {
	case p.poke <- struct{}{}:
	default: // one is waiting already
	}
	return true
}

// failed counts a failure in a row and yields the pause after it.
func (d *desk) failed(about subject) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures[about]++
	return pauseAfter(d.failures[about])
}

func pauseAfter(failures int) time.Duration {
	pause := firstPause
	for ; failures > 1 && pause < lastPause; failures-- {
		pause *= 2
	}
	return min(pause, lastPause)
}

func (d *desk) recovered(about subject) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.failures, about)
}

// adopt marks what is worked in alone mode.
func (d *desk) adopt(about subject) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ours[about] = true
}

func (d *desk) isOurs(about subject) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ours[about]
}
