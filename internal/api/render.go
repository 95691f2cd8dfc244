package api

import (
	"encoding/json"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func operationView(op *fleet.Operation) Operation {
	v := Operation{
		ID: op.ID, Fleet: op.Fleet, VM: op.VM, Kind: string(op.Kind), Phase: string(op.Phase),
		Finished: op.Phase.Finished(), By: Actor(op.Request.By), Image: op.Request.Image,
		Policy: policyView(op.Request.Policy), NoDrain: op.Request.NoDrain,
		CreatedAt: op.CreatedAt, UpdatedAt: op.UpdatedAt, PhaseSince: op.PhaseSince, FinishedAt: stamp(op.FinishedAt),
		Waiting: op.Waiting, Until: stamp(op.Until), Then: op.Then,
		Jobs: jobViews(op.Drain.Jobs), StoppedAt: stamp(op.Drain.StoppedAt), Deadline: stamp(op.Drain.Deadline),
		HardCapAt: stamp(op.Drain.HardCap),
		Verdict:   string(op.Drain.Verdict), Committed: !op.Delete.IntentAt.IsZero(), CutJobs: jobViews(op.CutJobs),
		Held: op.Held, Canceling: op.Canceled, Old: Incarnation(op.Old), New: Incarnation(op.Create.New),
	}
	for _, r := range op.Readings {
		v.Readings = append(v.Readings, Reading{Source: string(r.Source), At: r.At, Text: r.Text})
	}
	if r := op.Ruling; r != nil {
		v.Decision = &Decision{At: r.At, Row: r.Row, Rule: r.Rule, Reason: r.Reason}
	}
	if op.ErrMessage != "" {
		v.Failure = &Failure{Code: string(op.ErrCode), Message: op.ErrMessage, Hint: op.ErrHint}
	}
	return v
}

func jobViews(jobs []fleet.Job) []Job {
	var list []Job
	for _, j := range jobs {
		list = append(list, Job{ID: j.ID, Name: j.Name, Project: j.Project, Status: j.Status, URL: j.URL})
	}
	return list
}

func choreViews(chores []fleet.Chore) []Chore {
	var list []Chore
	for _, c := range chores {
		view := Chore{Kind: string(c.Kind), FinishedAt: stamp(c.FinishedAt), Outcome: c.Outcome}
		if c.FinishedAt.IsZero() {
			view.NextAt = stamp(c.NextAt)
		}
		list = append(list, view)
	}
	return list
}

func eventView(f fleet.Fact) Event {
	e := Event{
		ID: f.ID, At: f.At, Operation: f.Operation, Fleet: f.Fleet, VM: f.VM,
		Kind: f.Kind, Phase: string(f.Phase), Text: f.Text,
	}
	if len(f.Data) > 0 {
		e.Data = json.RawMessage(f.Data)
	}
	return e
}
