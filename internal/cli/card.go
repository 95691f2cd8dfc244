package cli

import (
	"fmt"
	"slices"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

// row prints one line of a card; nothing where there is no value.
func (p *program) row(name, value string) {
	if value != "" {
		fmt.Fprintf(p.Stdout, "%-11s %s\n", name, value)
	}
}

// card prints what an operation is now: what it does, what it waits for, what
// it knows, and what became of it.
func (p *program) card(op *client.Operation) {
	p.row("operation", op.Id)
	p.row("vm", op.Fleet+"/"+op.Vm)
	p.row("does", string(op.Kind))
	p.row("phase", p.paint.phase(string(op.Phase), string(op.Phase)))
	p.row("asked by", joined(op.By.Name, deref(op.By.From), deref(op.By.Why)))
	p.row("image", deref(op.Image))
	p.row("policy", policyText(&op.Policy))
	p.row("waits", p.waitsFor(op))
	p.evidence(op)
	if op.StoppedAt != nil {
		p.row("stopped at", p.date(*op.StoppedAt))
	}
	p.row("drained", verdictText(deref(op.Verdict)))
	if op.DeleteCommitted {
		p.row("delete", "committed: there is no way back")
	}
	p.row("old VM", incarnation(op.Old))
	p.row("new VM", incarnation(op.New))
	p.ended(op)
}

// joined leaves out what is empty.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

// incarnation names one life of a VM: as the provider does, and as GitLab does.
func incarnation(is client.Incarnation) string {
	instance, systemID := deref(is.Instance), deref(is.SystemId)
	if instance != "" {
		instance = "instance " + instance
	}
	if systemID != "" {
		systemID = "system_id " + systemID
	}
	return joined(instance, systemID)
}

// evidence prints what each source says, while that counts, and what was
// decided of it.
func (p *program) evidence(op *client.Operation) {
	if !op.Finished && !op.DeleteCommitted {
		for _, r := range deref(op.Readings) {
			p.row(sourceName(string(r.Source)), r.Text+", since "+p.date(r.At))
		}
	}
	if d := op.Decision; d != nil {
		p.row("decided", d.Reason+", at "+p.date(d.At))
		if d.Row != nil {
			p.row("", fmt.Sprintf("by row %d: %s", *d.Row, deref(d.Rule)))
		}
	}
}

// ended prints what became of jobs, of the operation, and of what follows it.
func (p *program) ended(op *client.Operation) {
	for _, job := range jobs(op.CutJobs) {
		p.row("cut", jobText(job))
	}
	for _, found := range deref(op.Found) {
		if !slices.ContainsFunc(jobs(op.CutJobs), func(job client.Job) bool { return strings.HasPrefix(found, fmt.Sprintf("job %d ", job.Id)) }) {
			p.row("found", found)
		}
	}
	if op.Failure != nil {
		p.row("failure", op.Failure.Message)
		p.row("next", deref(op.Failure.Hint))
	}
	for _, c := range deref(op.Chores) {
		state := "not yet"
		switch {
		case c.FinishedAt != nil:
			state = deref(c.Outcome)
		case c.NextAt != nil:
			state = "looks again at " + p.date(*c.NextAt)
		}
		p.row("follow-up", choreName(c.Kind)+": "+state)
	}
}

// verdictText says how a drain ended.
func verdictText(verdict string) string {
	switch verdict {
	case "":
		return ""
	case "drained":
		return "by proof"
	case "dirty":
		return "by proof; containers were left"
	case "off", "absent":
		return "nothing to drain: the instance is " + verdict
	case "never_joined":
		return "nothing to drain: no runner has joined from the VM"
	case "overrun":
		return "no: the cap passed with a job running"
	case "unreachable":
		return "no: the host could not be reached"
	case "unproven":
		return "not proven: GitLab could not be asked"
	case "skipped":
		return "no: the drain was skipped"
	default:
		return verdict
	}
}
