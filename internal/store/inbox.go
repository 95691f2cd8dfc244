package store

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Bounds of one commit of deliveries.
const (
	mostTogether  = 64
	togetherLimit = 5 * time.Second
)

// receipt is one delivery on its way into the journal.
type receipt struct {
	delivery *fleet.Delivery
	first    *fleet.Delivery // of a repeat
	err      error
	done     chan struct{}
}

// inbox holds receipts that nobody commits yet.
type inbox struct {
	mu      sync.Mutex
	waiting []*receipt
}

func (i *inbox) put(r *receipt) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = append(i.waiting, r)
}

// take yields the oldest ones, which its caller must commit now.
func (i *inbox) take() []*receipt {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := min(len(i.waiting), mostTogether)
	list := slices.Clone(i.waiting[:n])
	i.waiting = slices.Delete(i.waiting, 0, n)
	return list
}

// withdraw takes one back; false = somebody commits it.
func (i *inbox) withdraw(r *receipt) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.waiting, r)
	if at >= 0 {
		i.waiting = slices.Delete(i.waiting, at, at+1)
	}
	return at >= 0
}

// ReceiveDelivery stores a delivery with all of its work in one transaction,
// unless it came before (its key is known, or its body, see knownDelivery): then
// that one is yielded, with one repeat more and this key, and nothing else changes. Nil = it was new, or the known one came
// to nothing and this one, which gets its id, has work: a trigger was added, and
// a person sent the event again.
//
// Deliveries that come while another commit is synced share the next one: a
// burst costs the disk a few syncs, not one for each.
func (s *Store) ReceiveDelivery(ctx context.Context, d *fleet.Delivery) (first *fleet.Delivery, err error) {
	r := &receipt{delivery: d, done: make(chan struct{})}
	s.inbox.put(r)
	for {
		select {
		case <-r.done:
			return r.first, r.err
		case s.writer <- struct{}{}:
			s.receive(ctx, s.inbox.take())
			<-s.writer
		case <-ctx.Done():
			if s.inbox.withdraw(r) {
				return nil, s.fail("storing delivery "+d.ID, ctx.Err())
			}
			<-r.done
			return r.first, r.err
		}
	}
}

// receive commits receipts together, and, should that fail, each alone: one
// that cannot be stored must not keep the others out. Whoever waits for one
// whose committer was canceled is not canceled by that.
func (s *Store) receive(ctx context.Context, list []*receipt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), togetherLimit)
	defer cancel()
	defer func() {
		for _, r := range list {
			close(r.done)
		}
	}()
	if len(list) == 0 || len(list) > 1 && s.receiveAll(ctx, list) == nil {
		return
	}
	for _, r := range list {
		r.err = s.receiveAll(ctx, []*receipt{r})
	}
}

func (s *Store) receiveAll(ctx context.Context, list []*receipt) error {
	copies := make([]fleet.Delivery, len(list)) // a failed commit must change none
	firsts := make([]*fleet.Delivery, len(list))
	err := s.commit(ctx, "storing deliveries", func(tx *sql.Tx) (err error) {
		for i, r := range list {
			copies[i] = *r.delivery
			if firsts[i], err = receiveOne(ctx, tx, &copies[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, r := range list {
		*r.delivery, r.first = copies[i], firsts[i]
	}
	return nil
}
