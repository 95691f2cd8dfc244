package hooks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// giveUp is how long a task tries to ask for what it is there for: a VM may
// have another operation in its way for as long as that takes. With
// the longest ImageWait (72 h, package config) it is still below the life of the
// keys (7 days) under which nothing is asked for twice.
const giveUp = 24 * time.Hour

// delivery makes the row of an authenticated body: what it says, what it comes
// to and why. Errors: no randomness; the row is yielded all the same.
func (r *Receiver) delivery(c *claim, body []byte) (*fleet.Delivery, *Event, error) {
	now := r.Clock.Now().Round(0).UTC()
	d := &fleet.Delivery{Digest: digest(body), At: now, Event: string(KindOther)}
	if len(c.id) <= mostID {
		d.Key = c.id
	}
	e, err := Parse(body)
	if err != nil {
		d.Outcome, d.Reason, d.FinishedAt = fleet.DeliveryUnreadable, err.Error(), now
	} else {
		d.Event, d.Project, d.Path, d.Ref, d.SHA, d.Status, d.URL = string(e.Kind), e.Project, e.Path, e.Ref, e.SHA, e.Status, e.URL
		r.judge(d, e)
	}
	d.ID, err = fleet.NewDeliveryID(r.Random)
	return d, e, err
}

// judge says what a readable event comes to.
func (r *Receiver) judge(d *fleet.Delivery, e *Event) {
	var why []string
	for i := range r.Triggers {
		t := &r.Triggers[i]
		if ok, differs := t.Match(e); !ok {
			if t.On == e.Kind && t.Project == e.Project {
				why = append(why, fmt.Sprintf("trigger %s: %s", t.Name, differs))
			}
			continue
		}
		d.Tasks = append(d.Tasks, r.task(t, e, d.At))
	}
	switch {
	case len(d.Tasks) > 0:
		settle(d, d.At)
		return
	case e.Kind == KindJob && ended(e.Status):
		d.Outcome, d.Reason = fleet.DeliveryHint, r.hinted(e)
	case e.Kind == KindOther:
		d.Outcome, d.Reason = fleet.DeliveryIgnored, fmt.Sprintf("nothing follows from %q events", e.What)
	case len(why) > 0:
		d.Outcome, d.Reason = fleet.DeliveryIgnored, strings.Join(why, "; ")
	default:
		d.Outcome, d.Reason = fleet.DeliveryIgnored, fmt.Sprintf("no trigger is on %s events of project %d", e.Kind, e.Project)
	}
	d.FinishedAt = d.At
}

// task fixes what a trigger makes of an event.
func (r *Receiver) task(t *Trigger, e *Event, at time.Time) fleet.DeliveryTask {
	task := fleet.DeliveryTask{
		Trigger: t.Name, Fleet: t.Fleet, VMs: t.VMs, Lane: t.lane(), Rank: e.rank(), Moment: e.Moment,
		Until: at.Add(giveUp + t.ImageWait), Outcome: fleet.DeliveryPending,
	}
	if len(task.VMs) == 0 {
		task.VMs = slices.Clone(r.Fleets[t.Fleet].VMs)
	}
	if t.ImageWait > 0 {
		task.ImageUntil = at.Add(t.ImageWait)
	}
	if t.Image == nil {
		return task
	}
	var err error
	if task.Image, err = t.Image.Render(e.Values()); err != nil {
		task.Outcome, task.Reason = fleet.DeliveryRefused, err.Error()
	}
	return task
}

// ended says whether a job of this status has left its runner, or is about to.
func ended(status string) bool {
	return slices.Contains([]string{"success", "failed", "canceled", "canceling"}, status)
}

func (r *Receiver) hinted(e *Event) string {
	fleets := r.hints.fleets(e.Runner)
	if len(fleets) == 0 {
		return fmt.Sprintf("a job ended on runner %d, which no fleet has", e.Runner)
	}
	return "a job ended on the runner of " + strings.Join(fleets, ", ")
}

// settle derives what a delivery came to from its tasks.
func settle(d *fleet.Delivery, now time.Time) {
	d.Reason = strings.Join(reasons(d.Tasks), "; ")
	for _, outcome := range []fleet.DeliveryOutcome{fleet.DeliveryPending, fleet.DeliveryRefused, fleet.DeliveryAsked, fleet.DeliverySuperseded} {
		if slices.ContainsFunc(d.Tasks, func(t fleet.DeliveryTask) bool { return t.Outcome == outcome }) {
			d.Outcome = outcome
			break
		}
	}
	if d.Outcome != fleet.DeliveryPending && d.FinishedAt.IsZero() {
		d.FinishedAt = now
	}
}

func reasons(tasks []fleet.DeliveryTask) []string {
	var list []string
	for _, t := range tasks {
		text := fmt.Sprintf("trigger %s: recreate %d VMs of %s", t.Trigger, len(t.VMs), t.Fleet)
		if t.Image != "" {
			text += " with image " + t.Image
		}
		if t.Reason != "" {
			text += ": " + t.Reason
		}
		list = append(list, text)
	}
	return list
}
