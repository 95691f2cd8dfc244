package api_test

import (
	"context"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/whereabouts"
)

// everywhere finds each job on VM a.
type everywhere struct{ asked int }

func (e *everywhere) Locate(context.Context, string, whereabouts.Job) whereabouts.Place {
	e.asked++
	return whereabouts.Place{VM: "a", Reason: "GitLab says so"}
}

// Two GitLabs may both have project 42, job 1000 and runner 7.
func TestAJobIsLookedForOnlyAmongThoseOfTheFleetsGitLab(t *testing.T) {
	type issuers struct{ first, second string }
	for name, c := range map[string]struct {
		url    func(issuers) string // gitlab.url
		alone  bool                 // the second GitLab is not in server.oidc
		second bool                 // the job is of the second
		sure   bool
		unsure bool
	}{
		"the fleet's own":                 {url: func(i issuers) string { return i.first }, sure: true},
		"the fleet's own, with a slash":   {url: func(i issuers) string { return i.first + "/" }, sure: true},
		"another GitLab's":                {url: func(i issuers) string { return i.first }, second: true},
		"the only one, by another name":   {url: func(issuers) string { return "http://gitlab.internal" }, alone: true, sure: true},
		"one of two, both by other names": {url: func(issuers) string { return "http://gitlab.internal" }, unsure: true},
		"below another path":              {url: func(i issuers) string { return i.first + "/gitlab" }, unsure: true},
	} {
		locator := &everywhere{}
		d := openDoor(t, func(a *access.Options, o *api.Options) {
			spec := o.Fleets["gcp"]
			spec.GitLabURL = c.url(issuers{a.Issuers[0].URL, a.Issuers[1].URL})
			o.Fleets["gcp"], o.Locator = spec, locator
			a.Rules = append(a.Rules, access.Rule{
				Issuer: a.Issuers[1].URL, Claims: []access.Condition{{Claim: "project_id", Any: texts("42")}}, Allow: []access.Action{"recreate"}, Fleets: []string{"gcp"},
			})
			if c.alone {
				a.Issuers = a.Issuers[:1]
			}
		})
		if c.second {
			d.oidc = d.other
		}
		_, asked, body := d.asked(d.token(map[string]any{"runner_id": 7}), "k")
		self := asked.SelfDrain
		switch {
		case c.sure && (self == nil || !self.Sure || self.VM != "a"):
			t.Errorf("%s: %+v %s", name, self, body)
		case c.unsure && (self == nil || self.Sure || self.VM != "" || !strings.Contains(self.Reason, "gitlab.url")):
			t.Errorf("%s: %+v %s", name, self, body)
		case !c.sure && !c.unsure && (self != nil || len(asked.Operations) != 1):
			t.Errorf("%s: %+v %s", name, self, body)
		}
		if looked := locator.asked > 0; looked != c.sure {
			t.Errorf("%s: looked for %d times", name, locator.asked)
		}
	}
}
