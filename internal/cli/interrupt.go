package cli

import (
	"context"
	"fmt"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// interrupts turns signals into ticks, until ctx ends.
func (w *watcher) interrupts(ctx context.Context) <-chan struct{} {
	ticks := make(chan struct{})
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.Signals:
			}
			select {
			case <-ctx.Done():
				return
			case ticks <- struct{}{}:
			}
		}
	}()
	return ticks
}

// interrupted obeys Ctrl-C (design.md section 9). Beside a server it
// detaches. Alone, the first one gives intake back where there is a way back;
// the second says what goes on; the third leaves everything as it is.
func (w *watcher) interrupted(ctx context.Context) error {
	w.pressed++
	switch {
	case w.watching:
		return &exit{status: ExitInterrupted}
	case !w.alone():
		return w.left(func(string) string { return "the server goes on" })
	case w.leave, w.pressed > 2:
		return w.left(func(id string) string { return "nobody works on it now: `sluice op resume " + id + "` goes on" })
	case w.pressed == 2:
		fmt.Fprintf(w.Stderr, "sluice: still at it; a third Ctrl-C leaves it as it is, to go on with %s\n", list(w.resumes()))
		return nil
	default:
		return w.giveBack(ctx)
	}
}

// giveBack cancels what can be canceled and says what cannot.
func (w *watcher) giveBack(ctx context.Context) error {
	for i := range w.ops {
		op := &w.ops[i]
		if op.Finished {
			continue
		}
		_, err := w.Cancel(ctx, op.Id)
		switch {
		case err == nil:
			w.canceled = true
			fmt.Fprintf(w.Stderr, "sluice: %s/%s: interrupted: giving intake back, then the operation ends\n", op.Fleet, op.Vm)
		case fleet.CodeOf(err) == fleet.CodeConflict:
			fmt.Fprintf(w.Stderr, "sluice: %s/%s: interrupted, but there is no way back from here: going on to the end\n", op.Fleet, op.Vm)
		default:
			return err
		}
	}
	return nil
}

// resumes are the commands that go on with what has not ended.
func (w *watcher) resumes() []string {
	var commands []string
	for i := range w.ops {
		if !w.ops[i].Finished {
			commands = append(commands, "`sluice op resume "+w.ops[i].Id+"`")
		}
	}
	return commands
}

// left reports that operations go on, or stand still, without this command.
func (w *watcher) left(what func(id string) string) error {
	for i := range w.ops {
		if op := &w.ops[i]; !op.Finished {
			fmt.Fprintf(w.Stderr, "sluice: %s/%s: left %s in %s; %s; follow it with `sluice op watch %s`\n",
				op.Fleet, op.Vm, op.Id, op.Phase, what(op.Id), op.Id)
		}
	}
	if w.json() {
		if err := w.printJSON(client.Operations{Operations: w.ops}); err != nil {
			return err
		}
	}
	return &exit{status: ExitInterrupted}
}
