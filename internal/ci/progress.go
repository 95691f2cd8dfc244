package ci

import (
	"fmt"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

// clockFormat tells the time of a line. Job logs are read from everywhere: UTC.
const clockFormat = "15:04:05"

// phaseTexts say what a phase is about.
var phaseTexts = map[string]string{
	"queued":    "waits for its turn",
	"preflight": "checks the VM, its host and the image; nothing is touched yet",
	"draining":  "stops intake and waits for the jobs",
	"deleting":  "deletes the old VM",
	"creating":  "creates the new VM",
	"verifying": "waits until the new VM serves",
	"restoring": "gives intake back",
}

// progress prints what happens to operations: one line for each change.
type progress struct {
	log    *joblog
	clock  func() time.Time
	waited map[string]string // by operation: what it was last said to wait for
	said   map[string]string // by operation: the text of its last line
	phase  map[string]string // by operation: the phase that its events have come to
}

func newProgress(log *joblog) *progress {
	return &progress{log: log, clock: log.now, waited: map[string]string{}, said: map[string]string{}, phase: map[string]string{}}
}

// event prints one event of the journal about an operation.
func (p *progress) event(op *client.Operation, e *client.Event) {
	if e.Kind == "reading" { // the job log has the decisions; `op show` has what they rest on
		return
	}
	word, text := clean(deref(e.Phase)), clean(e.Text)
	p.phase[op.Id] = word
	switch {
	case e.Kind == "asked", word == string(client.OperationPhaseQueued):
		return // told when it was accepted
	case e.Kind == "phase" && text == word:
		text = phaseTexts[word]
	case e.Kind == "phase":
		text = strings.TrimPrefix(text, word+": ")
	case e.Kind == "warning", e.Kind == "orphan", e.Kind == "cut":
		text = p.log.alert(strings.ToUpper(e.Kind)) + ": " + text
	}
	if e.Kind == "note" && p.said[op.Id] == text {
		return
	}
	p.said[op.Id] = clean(e.Text)
	p.line(op, e.At, word, text)
}

// waiting prints what the journal does not say of an operation: until when it
// waits and what happens then, that a person is needed, and what a queued one
// waits for. What it waits for is an event otherwise, and is told as one first.
func (p *progress) waiting(op *client.Operation) {
	text := clean(deref(op.Waiting))
	if text == "" || op.Finished || p.phase[op.Id] != string(op.Phase) {
		return
	}
	switch {
	case deref(op.Held):
		text = p.log.alert("HELD") + ": " + text
		if op.Failure != nil {
			text += ": " + clean(op.Failure.Message)
		}
	case op.Phase == client.OperationPhaseQueued:
	case p.said[op.Id] == text && op.Until != nil && op.Until.After(p.clock()):
		text = "until " + op.Until.UTC().Format(clockFormat)
		if then := clean(deref(op.Then)); then != "" {
			text += ", then " + then
		}
	default:
		return
	}
	if p.waited[op.Id] == text {
		return
	}
	p.waited[op.Id] = text
	p.line(op, p.clock(), string(op.Phase), text)
}

func (p *progress) line(op *client.Operation, at time.Time, word, text string) {
	p.log.section(op.Id, title(op))
	p.log.line(strings.TrimRight(fmt.Sprintf("%s  %-10s  %s", at.UTC().Format(clockFormat), word, text), " "))
}

// title names an operation for people.
func title(op *client.Operation) string {
	return fmt.Sprintf("%s/%s  %s", clean(op.Fleet), clean(op.Vm), clean(op.Id))
}
