package real

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is what came of one world.
type outcome struct {
	plan                             plan
	broken                           []string // promises, the first to break first
	report                           string   // if one was broken: plan, story, the server's log
	kills, ended, ran, cut, orphaned int
	pending                          int // chores that wait, and say what for
	took                             time.Duration
}

// run lets a plan happen and judges it. An error: the world itself could not
// be made.
func run(ctx context.Context, p plan, bin binaries, busy *pace) (o outcome, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := newWorld(ctx, p, bin, busy)
	if err != nil {
		return o, fmt.Errorf("seed %d: %w", p.Seed, err)
	}
	defer w.end()
	stopCloud, err := w.serveCloud()
	if err != nil {
		return o, fmt.Errorf("seed %d: %w", p.Seed, err)
	}
	defer stopCloud()
	if err := w.awaitUp(); err != nil {
		return o, fmt.Errorf("seed %d: %w", p.Seed, err)
	}
	w.server.start()
	defer w.server.kill()
	var watching sync.WaitGroup
	watching.Go(w.watch)
	w.begin()
	w.inputs.Wait()
	w.awaitRest()
	w.server.stop()
	w.judgeTheEnd()
	o = w.outcome()
	cancel()
	watching.Wait()
	return o, nil
}

// awaitUp waits until every VM's runner has joined.
func (w *world) awaitUp() error {
	deadline := time.Now().Add(patience)
	for _, vm := range w.Spec().VMs {
		for h := w.Host(vm); h == nil || !h.Up() || !w.serving(vm); h = w.Host(vm) {
			if time.Now().After(deadline) || !w.pause(10*time.Millisecond) {
				return fmt.Errorf("%s does not come up", vm)
			}
		}
	}
	w.began = time.Now()
	return nil
}

// begin puts the plan on the clock.
func (w *world) begin() {
	at := func(d time.Duration, do func()) {
		w.inputs.Go(func() {
			if w.pause(d - time.Since(w.began)) {
				do()
			}
		})
	}
	for _, j := range w.plan.Jobs {
		at(j.At, func() { w.push(j) })
	}
	for i, a := range w.plan.Asks {
		at(a.At, func() { w.ask(i, a) })
	}
	for _, a := range w.plan.Acts {
		at(a.At, func() { w.perform(a) })
	}
}

// outcome sums a judged world up.
func (w *world) outcome() outcome {
	ledger := w.GitLab().Ledger()
	w.mu.Lock()
	defer w.mu.Unlock()
	o := outcome{
		plan: w.plan, broken: w.broken, kills: w.server.kills, ran: ledger.Ran, cut: ledger.Cut, orphaned: ledger.Orphaned,
		pending: w.pending, took: time.Since(w.began),
	}
	for _, op := range w.operations() {
		if op.Phase.Finished() {
			o.ended++
		}
	}
	if len(o.broken) > 0 {
		o.report = fmt.Sprintf("seed %d, world of %s\n%s\n--- plan (the timing is the machine's own: it may go otherwise when run again)\n%s\n--- what happened\n%s\n--- events\n%s\n--- the server's log\n%s\n--- so of seed %[1]d\n%[3]s",
			w.plan.Seed, o.took.Round(time.Millisecond), strings.Join(o.broken, "\n"), w.plan, strings.Join(w.story, "\n"), w.events(), w.server.log())
	}
	return o
}

// sum is what came of many worlds.
type sum struct {
	worlds, kills, ended, ran, cut, orphaned, pending int
	longest                                           time.Duration
	failed                                            []outcome
}

// runMany runs n worlds, so many side by side as the machine has time for, and
// stops early once enough have failed.
func runMany(ctx context.Context, plans func(int) plan, n, enough int, bin binaries) (s sum, err error) {
	var next, failures, living atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	measured, stop := context.WithCancel(ctx)
	defer stop()
	busy := &pace{}
	go busy.measure(measured)
	for range sideBySide {
		all.Go(func() {
			for failures.Load() < int64(enough) {
				busy.admits(&living)
				i := next.Add(1) - 1
				if i >= int64(n) {
					living.Add(-1)
					return
				}
				o, failed := run(ctx, plans(int(i)), bin, busy)
				living.Add(-1)
				mu.Lock()
				if failed != nil && err == nil {
					err = failed
					failures.Add(int64(enough))
				}
				if len(o.broken) > 0 {
					failures.Add(1)
				}
				s.add(o)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return s, err
}

func (s *sum) add(o outcome) {
	s.worlds++
	s.kills += o.kills
	s.ended += o.ended
	s.ran += o.ran
	s.cut += o.cut
	s.orphaned += o.orphaned
	s.pending += o.pending
	s.longest = max(s.longest, o.took)
	if len(o.broken) > 0 {
		s.failed = append(s.failed, o)
	}
}
