package hooks_test

import (
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

func TestATriggerMatchesItsEventsAndSaysWhyNot(t *testing.T) {
	pipeline := hooks.Trigger{On: hooks.KindPipeline, Project: project, Status: "success"}
	on := func(kind hooks.Kind, change func(*hooks.Trigger)) hooks.Trigger {
		trigger := hooks.Trigger{On: kind, Project: project}
		if change != nil {
			change(&trigger)
		}
		return trigger
	}
	branch := func(name string) func(*hooks.Trigger) { return func(t *hooks.Trigger) { t.Branch = name } }
	for _, c := range []struct {
		trigger hooks.Trigger
		event   string
		change  []string
		why     string // "" = it matches
	}{
		{pipeline, "pipeline", nil, ""},
		{pipeline, "push", nil, "on pipeline events"},
		{pipeline, "pipeline", []string{`"id": 42`, `"id": 43`}, "for project 42"},
		{pipeline, "pipeline", []string{`"status": "success",
    "detailed_status"`, `"status": "failed",
    "detailed_status"`}, `it is "failed", not "success"`},
		{pipeline, "pipeline", []string{`"ref": "main"`, `"ref": "feature"`}, "the branch is feature, not the default one, main"},
		{pipeline, "pipeline", []string{`"tag": false`, `"tag": true`}, "main is a tag, not a branch"},
		{pipeline, "pipeline", []string{`"default_branch": "main"`, `"default_branch": null`}, "does not say which branch is the default one"},
		// A merge request's pipeline has the name of a branch that may be a fork's.
		{pipeline, "pipeline", []string{`"source": "push"`, `"source": "merge_request_event"`}, `source is "merge_request_event"`},
		{pipeline, "pipeline", []string{`"source": "push"`, `"source": "parent_pipeline"`}, `source is "parent_pipeline"`},
		{pipeline, "pipeline", []string{`"source": "push"`, `"source": "schedule"`}, ""},
		{pipeline, "pipeline", []string{`"source": "push"`, `"source": "pipeline"`}, ""},
		// Scans and policies build nothing, and GitLab adds sources.
		{pipeline, "pipeline", []string{`"source": "push"`, `"source": "ondemand_dast_scan"`}, `source is "ondemand_dast_scan"; name it in sources`},
		{pipeline, "pipeline", []string{`"source": "push"`, `"source": "security_orchestration_policy"`}, `source is "security_orchestration_policy"`},
		{pipeline, "pipeline", []string{`"source": "push"`, `"source": "unknown"`}, `source is "unknown"`},
		{pipeline, "pipeline", []string{`"source": "push"`, `"source": null`}, `source is ""`},
		{on(hooks.KindPipeline, func(t *hooks.Trigger) { t.Status, t.Sources = "success", []string{"web"} }), "pipeline", nil, `source is "push", not web`},
		{on(hooks.KindPipeline, func(t *hooks.Trigger) { t.Status, t.Sources = "success", []string{"parent_pipeline"} }), "pipeline", []string{`"source": "push"`, `"source": "parent_pipeline"`}, ""},
		{on(hooks.KindPipeline, func(t *hooks.Trigger) { t.Status, t.Tag = "success", "v*" }), "pipeline", nil, "main is a branch, not a tag"},
		{on(hooks.KindPipeline, func(t *hooks.Trigger) { t.Status, t.Tag = "success", "v*" }), "pipeline", []string{`"tag": false`, `"tag": true`, `"ref": "main"`, `"ref": "v1"`}, ""},
		{on(hooks.KindPush, branch("main")), "push", nil, ""},
		{on(hooks.KindPush, branch("mai")), "push", nil, "the branch is main, not mai"},
		{on(hooks.KindPush, branch("m*n")), "push", nil, ""},
		{on(hooks.KindPush, branch("release/*")), "push", []string{"refs/heads/main", "refs/heads/release/a/b"}, ""},
		{on(hooks.KindPush, branch("a.b")), "push", []string{"refs/heads/main", "refs/heads/axb"}, "the branch is axb, not a.b"},
		{on(hooks.KindPush, branch("main")), "push", []string{"refs/heads/main", "refs/heads/main\\u00a0"}, "control characters"},
		{on(hooks.KindPush, nil), "push", []string{`"after": "` + sha, `"after": "` + strings.Repeat("0", 40)}, "main was deleted"},
		{on(hooks.KindTag, nil), "tag_push", nil, ""},
		{on(hooks.KindTag, func(t *hooks.Trigger) { t.Tag = "v2*" }), "tag_push", nil, "the tag is v1.4.0, not v2*"},
		{on(hooks.KindTag, nil), "tag_push", []string{`"after": "` + sha, `"after": "` + strings.Repeat("0", 40)}, "v1.4.0 was deleted"},
		{on(hooks.KindPush, branch("v1.4.0")), "tag_push", nil, "on push events"},
		{on(hooks.KindRelease, nil), "release", nil, ""},
		{on(hooks.KindRelease, nil), "release", []string{`"action": "create"`, `"action": "delete"`}, `it is "delete", not "create"`},
		{on(hooks.KindMerge, nil), "merge_request", nil, ""},
		{on(hooks.KindMerge, nil), "merge_request", []string{`"action": "merge"`, `"action": "open"`}, `it is "open", not "merge"`},
		{on(hooks.KindMerge, nil), "merge_request", []string{`"target_branch": "main"`, `"target_branch": "next"`}, "the branch is next"},
	} {
		event, err := hooks.Parse(fixture(t, c.event, c.change...))
		if err != nil {
			if !strings.Contains(err.Error(), c.why) || c.why == "" {
				t.Errorf("%s %v: %v", c.event, c.change, err)
			}
			continue
		}
		ok, why := c.trigger.Match(event)
		if ok != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s %v: %t, %q; want %q", c.event, c.change, ok, why, c.why)
		}
	}
}
