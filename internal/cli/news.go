package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// How often operations are read anew without news of them: in this process it
// costs nothing, and nobody tells when the one who works on them is gone.
const (
	readHere = time.Second
	readFar  = 10 * time.Second
)

// patienceHere is how long a journal in this process may fail.
const patienceHere = 20 * time.Second

// news is what comes in while a command follows, to be printed in turn.
type news struct {
	in   chan func()
	lost chan error // why no more comes
	end  context.CancelFunc
	done chan struct{}
}

// listen begins to hear of the operations, after what was told already.
func (w *watcher) listen(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	n := &news{in: make(chan func()), lost: make(chan error, 1), end: cancel, done: make(chan struct{})}
	w.news = n
	what := client.Following{Operations: w.ids(), After: w.after}
	if w.here() {
		what.Patience = patienceHere
	} else {
		what.Trouble = func(err error) { _ = n.tell(ctx, func() { w.trouble(err) }) } // ctx says the same to Follow
	}
	go func() {
		defer close(n.done)
		n.lost <- w.Follow(ctx, what, func(e client.Event) error {
			return n.tell(ctx, func() { w.tell(&e) })
		})
	}()
}

// tell hands over what is to be printed.
func (n *news) tell(ctx context.Context, what func()) error {
	select {
	case n.in <- what:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hush ends the hearing.
func (w *watcher) hush() {
	if w.news != nil {
		w.news.end()
		<-w.news.done
		w.news = nil
	}
}

// pause waits for news and prints it, and says whether an interrupt came
// instead. Without news it ends when the operations are to be read anew.
func (w *watcher) pause(ctx context.Context, interrupts <-chan struct{}) (interrupted bool, err error) {
	if w.news == nil {
		w.listen(ctx)
	}
	timer := time.NewTimer(w.readAgain())
	defer timer.Stop()
	select {
	case what := <-w.news.in:
		what()
		w.rest()
	case err := <-w.news.lost:
		w.hush()
		return false, err
	case <-interrupts:
		return true, nil
	case <-timer.C:
		w.allMoved()
	}
	return false, nil
}

// readAgain is when operations are to be read anew, be there news or not.
func (w *watcher) readAgain() time.Duration {
	if w.here() {
		return readHere
	}
	for i := range w.ops {
		if w.moved[w.ops[i].Id] && !w.ops[i].Finished { // could not be read
			return readHere
		}
	}
	return readFar
}

// rest prints what comes together with the first.
func (w *watcher) rest() {
	for {
		select {
		case what := <-w.news.in:
			what()
		default:
			return
		}
	}
}

// trouble says that the server does not answer, or does again (nil).
func (w *watcher) trouble(err error) {
	w.allMoved()
	if err == nil {
		fmt.Fprintf(w.Stderr, "sluice: %s answers again\n", w.Where())
		return
	}
	if known, ok := errors.AsType[*fleet.Error](err); ok { // without its hint: there is nothing to do
		plain := *known
		plain.Hint = ""
		err = &plain
	}
	fmt.Fprintf(w.Stderr, "sluice: %v; asking again for up to 10 min\n", err)
}
