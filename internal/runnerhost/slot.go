package runnerhost

import (
	"context"
	"sync"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// slot is the place of one incarnation's connection. Whoever holds turn may
// connect; the others wait for that one.
type slot struct {
	turn chan struct{} // of capacity 1

	mu      sync.Mutex
	closed  bool
	link    *link
	address string // that link was opened to
}

// close ends the connection for good. One that is being opened is closed when
// it comes.
func (s *slot) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.link != nil {
		s.link.close()
	}
}

// current is the living connection to the address, or nil. One to an address
// that the incarnation had before is closed.
func (s *slot) current(address string) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil || s.link.dead() {
		return nil
	}
	if s.address != address {
		s.link.close()
		return nil
	}
	return s.link
}

func (s *slot) keep(l *link, address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.link, s.address = l, address
	return true
}

// connection yields the target's connection, and whether it was kept from an
// earlier command.
func (h *Hosts) connection(ctx context.Context, t engine.Target) (l *link, kept bool, err error) {
	if t.Address == "" {
		return nil, false, fleet.Errorf(fleet.CodeUnavailable, "%s: the provider reports no address", t.Ref)
	}
	s := h.slot(t)
	if l := s.current(t.Address); l != nil {
		return l, true, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, false, unreachable(t, "connecting", ctx.Err())
	}
	if l := s.current(t.Address); l != nil {
		return l, true, nil
	}
	l, err = h.connect(ctx, t)
	if err != nil {
		return nil, false, err
	}
	if !s.keep(l, t.Address) {
		l.close()
		return nil, false, fleet.Errorf(fleet.CodeCanceled, "%s: the connection is no longer wanted", t.Ref)
	}
	return l, false, nil
}

func (h *Hosts) slot(t engine.Target) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := incarnation{t.Ref, t.Instance}
	s := h.links[key]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1), closed: h.closed}
		h.links[key] = s
	}
	return s
}
