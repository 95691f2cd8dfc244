package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestTheWebhooksOfTriggersAreExamined(t *testing.T) {
	good := Webhook{ID: 5, Events: []string{"pipeline", "job"}, Alert: "executable", VerifiesTLS: true, Status: "200"}
	with := func(change func(*Webhook)) []Webhook {
		w := good
		change(&w)
		return []Webhook{w}
	}
	refused := fleet.Errorf(fleet.CodeForbidden, "answered 403").WithHint("the user needs the Maintainer role")
	for name, c := range map[string]struct {
		list  []Webhook
		err   error
		blind bool
		heard time.Time
		want  string // of the finding: severity, what, mend; "" = none
	}{
		"healthy":                    {list: []Webhook{good}},
		"one of two sends it":        {list: append(with(func(w *Webhook) { w.Events = nil }), good)},
		"none, but a group's is":     {heard: noon},
		"none":                       {want: "error: project 42 has no webhook that comes here"},
		"the events are not ticked":  {list: with(func(w *Webhook) { w.Events = []string{"push"} }), want: "error: no webhook of project 42 sends pipeline events; tick them"},
		"disabled for a while":       {list: with(func(w *Webhook) { w.Alert, w.Status, w.DisabledUntil = "temporarily_disabled", "401", noon }), want: "error: webhook 5 of project 42 is disabled by GitLab until 2030-01-01T12:00:00Z; mend what it answered (last: 401)"},
		"disabled for good":          {list: with(func(w *Webhook) { w.Alert, w.Status = "disabled", "" }), want: "error: webhook 5 of project 42 is disabled by GitLab; mend what it answered (last: not known)"},
		"last answered with 401":     {list: with(func(w *Webhook) { w.Status = "401" }), want: "warning: webhook 5 of project 42 was last answered with 401; see its recent events"},
		"never reached":              {list: with(func(w *Webhook) { w.Status = "internal error" }), want: "warning: webhook 5 of project 42 was last answered with internal error"},
		"an old GitLab says nothing": {list: with(func(w *Webhook) { w.Status, w.Alert = "", "" })},
		"TLS is not verified":        {list: with(func(w *Webhook) { w.VerifiesTLS = false }), want: "warning: webhook 5 of project 42 does not verify"},
		"the token may not look":     {err: refused, want: "warning: the GitLab token may not read the webhooks of project 42: answered 403; the user needs the Maintainer role"},
		"GitLab is away":             {err: fleet.Errorf(fleet.CodeUnavailable, "no answer"), want: "warning: no answer"},
		"no token, never heard":      {blind: true, want: "warning: nothing of project 42 was ever let in"},
		"no token, but heard":        {blind: true, heard: noon},
	} {
		p := Patient{
			Fleet:    &engine.Fleet{Spec: fleet.Spec{Name: "gcp"}},
			Triggers: []Trigger{{"t", "pipeline", 42}, {"u", "pipeline", 42}},
			Heard:    func(context.Context, int64) (time.Time, error) { return c.heard, nil },
			Webhooks: func(_ context.Context, project int64) ([]Webhook, error) {
				if project != 42 {
					t.Errorf("project %d was asked for", project)
				}
				return c.list, c.err
			},
		}
		if c.blind {
			p.Webhooks = nil
		}
		e := &examination{patient: p}
		e.webhooks(t.Context())
		got := ""
		if len(e.findings) > 0 {
			f := e.findings[0]
			got = string(f.Severity) + ": " + f.What + "; " + f.Mend
			if f.Check != "webhook" || f.Would == "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if (got == "") != (c.want == "") || !contains(got, c.want) {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// contains says whether the parts of want, at semicolons, come in text in turn.
func contains(text, want string) bool {
	for part := range strings.SplitSeq(want, "; ") {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i:]
	}
	return true
}
