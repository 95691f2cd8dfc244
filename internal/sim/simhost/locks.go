package simhost

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// locks are the advisory locks (flock) of a host.
type locks struct {
	mu      sync.Mutex
	held    map[string]holder // path → who
	changed chan struct{}
}

// holder is a descriptor of a shell, or a flock command of its own (n empty).
type holder struct {
	table any
	n     string
}

func newLocks() *locks {
	return &locks{held: map[string]holder{}, changed: make(chan struct{})}
}

func (l *locks) try(name string, who holder) (bool, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if by, taken := l.held[name]; taken && by != who {
		return false, l.changed
	}
	l.held[name] = who
	return true, nil
}

// release frees what a table holds on descriptor n, or all of it if n is "".
func (l *locks) release(table any, n string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, by := range l.held {
		if by.table == table && (n == "" || by.n == n) {
			delete(l.held, name)
			close(l.changed)
			l.changed = make(chan struct{})
		}
	}
}

func (l *locks) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.held)
}

// take waits for the lock, at most for limit (negative: without end).
func (l *locks) take(ctx context.Context, clock simclock.Clock, name string, who holder, limit time.Duration) bool {
	if limit >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer clock.AfterFunc(limit, cancel).Stop()
	}
	for {
		ok, changed := l.try(name, who)
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// flock [-w S] [-n] N | flock [-w S] [-n] FILE COMMAND…
func flock(ctx context.Context, c *call) int {
	limit := time.Duration(-1)
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-n":
			limit = 0
		case "-w":
			if len(args) < 2 {
				return c.fail(64, "flock: option requires an argument -- 'w'")
			}
			seconds, err := strconv.ParseFloat(args[1], 64)
			if err != nil {
				return c.fail(64, "flock: invalid timeout value: %s", args[1])
			}
			limit, args = time.Duration(seconds*float64(time.Second)), args[1:]
		case "-u":
			c.fds.locks.release(c.fds, args[len(args)-1])
			return 0
		}
		args = args[1:]
	}
	switch len(args) {
	case 0:
		return c.fail(64, "flock: not enough arguments")
	case 1:
		name := c.fds.name(args[0])
		if name == "" {
			return c.fail(65, "flock: %s: Bad file descriptor", args[0])
		}
		if !c.h.locks.take(ctx, c.h.o.Clock, name, holder{c.fds, args[0]}, limit) {
			return 1
		}
		return 0
	}
	own := &struct{ byte }{}
	if !c.h.locks.take(ctx, c.h.o.Clock, c.path(args[0]), holder{own, ""}, limit) {
		return 1
	}
	defer c.h.locks.release(own, "")
	return c.with(args[2:]).exec(ctx, args[1])
}
