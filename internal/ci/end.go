package ci

import (
	"context"
	"fmt"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/outcome"
)

// accepted says what the controller made of the request.
func (j *job) accepted() {
	for i := range j.ops {
		op := &j.ops[i]
		text := fmt.Sprintf("%s/%s: operation %s", clean(op.Fleet), clean(op.Vm), clean(op.Id))
		switch {
		case op.Finished:
			text += " has ended already"
		case deref(op.Attached) || op.Phase != client.OperationPhaseQueued:
			text += " runs already (" + clean(string(op.Phase)) + ", asked for by " + clean(op.By.Name) + "): this job attaches to it"
		}
		j.log.line(text + "  " + link(j.Server, op.Id))
	}
}

// refused ends a job that asked nobody, or whose request was refused.
func (j *job) refused(err error) int {
	return j.unasked(j.problem("refused", err), err)
}

// unasked reports that nothing was asked for, and why.
func (j *job) unasked(lines []string, err error) int {
	status, state := outcome.OfError(err), StateNotAsked
	if status == outcome.Refused {
		state = StateRefused
	}
	j.lastReport(unasked(j.Server, j.Order, state, lines))
	return status
}

// unaccepted ends a job whose request was not accepted: refused, never
// answered, or the job was canceled meanwhile.
func (j *job) unaccepted(ctx context.Context, err error) int {
	if passing(ctx, err) {
		lines := []string{
			"the job was canceled before the controller had answered; it may have accepted the request all the same",
			"next: `sluice op list` on the controller shows it; a retry of this job attaches to it",
		}
		j.say(j.log.alert("CANCELED"), lines)
		j.lastReport(unasked(j.Server, j.Order, StateNotAsked, lines))
		return outcome.Interrupted
	}
	word, ok := map[fleet.Code]string{
		fleet.CodeUnavailable: "no answer from", fleet.CodeInternal: "not understood:", client.CodeUnauthorized: "not let in by",
	}[fleet.CodeOf(err)]
	switch {
	case !ok:
		word = "refused by"
	case fleet.CodeOf(err) == fleet.CodeUnavailable && client.Answered(err):
		word = "not served now by"
	}
	return j.unasked(j.problem(word+" "+clean(j.Server), err), err)
}

// problem prints an error whole, and yields its lines.
func (j *job) problem(what string, err error) []string {
	lines := []string{reason(err)}
	if code := fleet.CodeOf(err); code != fleet.CodeInternal {
		lines = append(lines, "code: "+clean(string(code)))
	}
	lines = append(lines, hints(err, j.Server, j.Token, deref(j.date.Load()), j.Now())...)
	j.log.end()
	j.say(j.log.bad(upper(what)), lines)
	return lines
}

// upper writes a sentence's beginning in capitals, as far as its first URL.
func upper(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if strings.Contains(word, "://") {
			break
		}
		words[i] = strings.ToUpper(word)
	}
	return strings.Join(words, " ")
}

// say prints lines, of which there is at least one, under a word.
func (j *job) say(word string, lines []string) {
	j.log.line(word + ": " + lines[0])
	for _, text := range lines[1:] {
		j.log.line("  " + text)
	}
}

// lost ends a job that can follow no longer. The operations go on.
func (j *job) lost(ctx context.Context, err error) int {
	lines := []string{"the operations were not touched by that: the controller goes on"}
	status := outcome.Failed
	if passing(ctx, err) {
		lines = append([]string{"the job was canceled, and nothing else"}, lines...)
		status = outcome.Interrupted
		j.log.end()
		j.say(j.log.alert("CANCELED"), lines)
	} else {
		lines = append(j.problem("lost the controller", err), lines...)
		j.log.line("  " + lines[len(lines)-1])
	}
	j.whereToLook()
	j.lastReport(reported(j.Server, j.Order.Fleet, j.ops, lines))
	return status
}

// handedOver ends a job that does not wait for its operations.
func (j *job) handedOver() int {
	j.whereToLook()
	return j.finalReport(outcome.Done)
}

// whereToLook names what goes on, and how to see it and to stop it.
func (j *job) whereToLook() {
	for i := range j.ops {
		op := &j.ops[i]
		if op.Finished {
			continue
		}
		j.log.line(fmt.Sprintf("  %s/%s goes on: sluice op watch %s; to stop it: sluice op cancel %s", clean(op.Fleet), clean(op.Vm), clean(op.Id), clean(op.Id)))
		j.log.line("    " + link(j.Server, op.Id))
	}
}

// ended tells how everything ended, and ends a job that has followed to the
// end. With self, what has not ended is the VM that the job runs on.
func (j *job) ended(self bool) int {
	status := outcome.Done
	for i := range j.ops {
		op := &j.ops[i]
		state := stateOf(op)
		if state != StateRunning || !self {
			status = outcome.Worse(status, state.status())
		}
		j.verdict(op, state)
	}
	if self {
		j.log.line("The job ends here, so that its own VM can be drained.")
		j.whereToLook()
	}
	j.log.line(sentence(status))
	return j.finalReport(status)
}

// verdict prints how one operation stands, and why.
func (j *job) verdict(op *client.Operation, state State) {
	text := headline(op)
	switch state {
	case StateSucceeded:
		text = j.log.good("✓") + " " + text
	case StateRunning:
	case StateJobCut:
		text = j.log.alert("! ") + text
	default:
		text = j.log.bad("✗ " + text)
	}
	j.log.line(text)
	for _, line := range reasons(op) {
		j.log.line("    " + line)
	}
}

// sentence says what an exit status means.
func sentence(status int) string {
	return fmt.Sprintf("exit status %d: %s", status, map[int]string{
		outcome.Done: "done", outcome.Failed: "failed", outcome.JobCut: "done, but a job was cut",
		outcome.Refused: "refused by a safety rule; nothing was touched", outcome.Halted: "held; a person is needed",
	}[status])
}

// finalReport writes the last reports; what cannot be written fails a job that
// otherwise went well, for its followers would lack it.
func (j *job) finalReport(status int) int {
	if err := j.report(reported(j.Server, j.Order.Fleet, j.ops, nil)); err != nil {
		j.problem("a report is missing", err)
		return outcome.Worse(status, outcome.Failed)
	}
	return status
}

// lastReport writes the reports of a job that fails anyhow.
func (j *job) lastReport(r Report) {
	if j.Reports == "" {
		return
	}
	if err := j.report(r); err != nil {
		j.problem("a report is missing", err)
	}
}

// list names VMs for people.
func list(fleetName string, vms []string) string {
	if len(vms) == 1 {
		return fleetName + "/" + vms[0]
	}
	return fmt.Sprintf("%d VMs of fleet %s: %s", len(vms), fleetName, clean(strings.Join(vms, ", ")))
}
