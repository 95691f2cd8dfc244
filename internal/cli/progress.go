package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

// clockFormat is how a line of progress tells the time.
const clockFormat = "15:04:05"

// out is where progress goes: Stdout belongs to the document with --output json.
func (w *watcher) out() io.Writer {
	if w.json() {
		return w.Stderr
	}
	return w.Stdout
}

// line prints one line of progress.
func (w *watcher) line(at time.Time, ref, word, text string) {
	fmt.Fprintf(w.out(), "%s  %-*s  %s", w.paint.quiet(w.at(at).Format(clockFormat)), w.refWidth(), ref,
		w.paint.phase(word, fmt.Sprintf("%-10s", word)))
	if text != "" {
		fmt.Fprint(w.out(), "  "+text)
	}
	fmt.Fprintln(w.out())
}

func (w *watcher) refWidth() int {
	width := 0
	for i := range w.ops {
		width = max(width, len(w.ops[i].Fleet)+1+len(w.ops[i].Vm))
	}
	return width
}

// event prints one event of the journal. Who follows is told the decisions;
// the readings behind them are in `op show`.
func (w *watcher) event(e *client.Event) {
	if e.Kind == "reading" {
		return
	}
	what := w.eventText(e)
	if e.Kind == "asked" {
		what += " (" + deref(e.Operation) + ")"
	}
	w.said[deref(e.Operation)] = e.Text
	w.line(e.At, deref(e.Fleet)+"/"+deref(e.Vm), deref(e.Phase), what)
}

// eventText is what an event says, beside its phase.
func (p *program) eventText(e *client.Event) string {
	word, text := deref(e.Phase), e.Text
	switch e.Kind {
	case "phase":
		if text == word {
			return phaseText(word)
		}
		return strings.TrimPrefix(text, word+": ")
	case "warning", "orphan", "cut":
		return p.paint.alert(strings.ToUpper(e.Kind) + ": " + text)
	default:
		if kind, outcome, ok := strings.Cut(text, ": "); ok && (kind == "orphan_watch" || kind == "deregister") {
			return choreName(kind) + ": " + outcome
		}
		return text
	}
}

// phaseText says what a phase is about; "" where the word says it all.
func phaseText(phase string) string {
	return map[string]string{
		"queued":    "waits for its turn",
		"preflight": "checks the VM, its host and the image; nothing is touched yet",
		"draining":  "stops intake and waits for the jobs",
		"deleting":  "deletes the old VM",
		"creating":  "creates the new VM",
		"verifying": "waits until the new VM serves",
		"restoring": "gives intake back",
		"succeeded": "done",
	}[phase]
}

// waiting prints what an operation waits for, when that has changed: which
// job, until when, and what happens then. The journal may have said the first
// part already.
func (w *watcher) waiting(op *client.Operation) {
	text := w.waitsFor(op)
	if text == "" || w.printed[op.Id] == text {
		return
	}
	w.printed[op.Id] = text
	if w.said[op.Id] == deref(op.Waiting) && !deref(op.Held) && !w.stands(op) {
		if text = w.untilThen(op); text == "" {
			return
		}
	}
	w.line(w.Now(), op.Fleet+"/"+op.Vm, string(op.Phase), text)
}

// stands says whether an operation stands still because nobody works on it.
func (p *program) stands(op *client.Operation) bool {
	return !op.Finished && p.idle != nil && p.idle()
}

// waitsFor says what an operation waits for, until when, and what then. What
// the journal says of it is old when nobody works on it.
func (p *program) waitsFor(op *client.Operation) string {
	text := deref(op.Waiting)
	if op.Held != nil && *op.Held {
		text = "HELD: " + text
		if op.Failure != nil {
			text += ": " + op.Failure.Message
		}
		return text + "; go on with `sluice op resume " + op.Id + "`"
	}
	if p.stands(op) {
		return "nobody works on this: `sluice serve`, or `sluice op resume " + op.Id + "`"
	}
	if text == "" {
		return ""
	}
	if end := p.untilThen(op); end != "" {
		text += "; " + end
	}
	return text
}

// untilThen says when the waiting ends and what happens at that moment; ""
// when that is over.
func (p *program) untilThen(op *client.Operation) string {
	if op.Until == nil || op.Until.Before(p.Now()) {
		return ""
	}
	text := "until " + p.clock(*op.Until)
	if then := deref(op.Then); then != "" {
		text += ", then " + then
	}
	return text
}

// summary says how everything ended.
func (w *watcher) summary() {
	for i := range w.ops {
		op := &w.ops[i]
		fmt.Fprintln(w.Stdout, w.ending(op))
		if deref(op.Held) {
			fmt.Fprintf(w.Stderr, "sluice: %s/%s is held: %s\n  next: `sluice op resume %s`, with --image if another image is needed\n",
				op.Fleet, op.Vm, deref(op.Waiting), op.Id)
		}
		if op.Failure != nil && op.Phase == client.OperationPhaseFailed {
			fmt.Fprintf(w.Stderr, "sluice: %s\n", about(op, op.Failure.Message))
			if hint := deref(op.Failure.Hint); hint != "" {
				fmt.Fprintf(w.Stderr, "  next: %s\n", hint)
			}
		}
		for _, job := range jobs(op.CutJobs) {
			fmt.Fprintf(w.Stderr, "sluice: %s/%s: a job was cut: %s\n", op.Fleet, op.Vm, jobText(job))
		}
	}
}

// about names the VM before a text that does not begin with it.
func about(op *client.Operation, text string) string {
	ref := op.Fleet + "/" + op.Vm
	if rest, ok := strings.CutPrefix(text, ref); ok && (rest == "" || rest[0] == ' ' || rest[0] == ':') {
		return text
	}
	return ref + ": " + text
}

func (w *watcher) ending(op *client.Operation) string {
	took := ""
	if op.FinishedAt != nil {
		took = " in " + op.FinishedAt.Sub(op.CreatedAt).Round(time.Second).String()
	}
	text := fmt.Sprintf("%s/%s: %s %s%s", op.Fleet, op.Vm, op.Kind, w.paint.phase(string(op.Phase), string(op.Phase)), took)
	before, after := deref(op.Old.Instance), deref(op.New.Instance)
	if op.Phase == client.OperationPhaseSucceeded && before != after && after != "" {
		text += fmt.Sprintf(" (instance %s → %s)", orNone(before), after)
	}
	return text
}

func jobText(job client.Job) string {
	text := fmt.Sprintf("job %d", job.Id)
	if url := deref(job.Url); url != "" {
		text += " " + url
	}
	return text
}

func jobs(list *[]client.Job) []client.Job {
	if list == nil {
		return nil
	}
	return *list
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
