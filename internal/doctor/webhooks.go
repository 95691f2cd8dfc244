package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Trigger is a trigger as far as it is examined: which events of which project
// it waits for.
type Trigger struct {
	Name    string
	On      string
	Project int64
}

// Webhook is what GitLab says of a webhook that comes here.
type Webhook struct {
	ID            int64
	Events        []string // the kinds that it sends
	Alert         string   // executable, temporarily_disabled, disabled
	DisabledUntil time.Time
	VerifiesTLS   bool
	Status        string // GitLab's last answer from here; "" = not known
}

// webhooks examines whether what the triggers wait for can come.
func (e *examination) webhooks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var seen []int64
	for _, t := range e.patient.Triggers {
		if !slices.Contains(seen, t.Project) {
			seen = append(seen, t.Project)
			e.project(ctx, t.Project)
		}
	}
}

func (e *examination) project(ctx context.Context, project int64) {
	heard := e.heard(ctx, project)
	if e.patient.Webhooks == nil {
		if !heard {
			e.found(CodeWebhooksUnknown, "", fmt.Sprintf("nothing of project %d was ever let in, and without gitlab.token its webhooks cannot be looked at", project))
		}
		return
	}
	list, err := e.patient.Webhooks(ctx, project)
	switch {
	case fleet.CodeOf(err) == fleet.CodeForbidden, fleet.CodeOf(err) == fleet.CodeNotFound:
		f := failure(CodeWebhooksUnknown, "", err)
		f.What = fmt.Sprintf("the GitLab token may not read the webhooks of project %d: %s", project, f.What)
		e.add(f)
	case err != nil:
		e.add(failure(CodeWebhooksUnknown, "", err))
	case len(list) == 0 && !heard: // if it was heard, a group's webhook comes here
		e.found(CodeWebhookMissing, "", fmt.Sprintf("project %d has no webhook that comes here, and none of its group was ever let in", project))
	case len(list) > 0:
		e.sends(project, list)
		for i := range list {
			e.health(project, &list[i])
		}
	}
}

func (e *examination) heard(ctx context.Context, project int64) bool {
	if e.patient.Heard == nil {
		return false
	}
	at, err := e.patient.Heard(ctx, project)
	return err == nil && !at.IsZero()
}

// sends finds events that a trigger waits for and no webhook sends.
func (e *examination) sends(project int64, list []Webhook) {
	for _, t := range e.patient.Triggers {
		sent := slices.ContainsFunc(list, func(w Webhook) bool { return slices.Contains(w.Events, t.On) })
		if t.Project == project && !sent {
			f := finding(CodeWebhookEvents, "", fmt.Sprintf("no webhook of project %d sends %s events", project, t.On))
			f.Would = "trigger " + t.Name + " never fires"
			e.add(f)
		}
	}
}

// health examines one webhook.
func (e *examination) health(project int64, w *Webhook) {
	name := fmt.Sprintf("webhook %d of project %d", w.ID, project)
	switch {
	case w.Alert == "disabled" || w.Alert == "temporarily_disabled":
		what := name + " is disabled by GitLab"
		if !w.DisabledUntil.IsZero() {
			what += " until " + w.DisabledUntil.UTC().Format(time.RFC3339)
		}
		f := finding(CodeWebhookDisabled, "", what)
		f.Mend = "mend what it answered (last: " + orNone(w.Status) + "), then test it in GitLab: that enables it again"
		e.add(f)
	case w.Status != "" && !strings.HasPrefix(w.Status, "2"):
		e.found(CodeWebhookRefused, "", name+" was last answered with "+w.Status)
	}
	if !w.VerifiesTLS {
		e.found(CodeWebhookUnverified, "", name+" does not verify the certificate of this server")
	}
}

func orNone(text string) string {
	if text == "" {
		return "not known"
	}
	return text
}
