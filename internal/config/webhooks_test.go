package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const hooked = minimal + `webhooks:
  gitlab: {signing_tokens: [{file: /a}, {env: B}], secret_tokens: [{credential: c}]}
triggers:
`

func TestATriggerGetsTheDefaultsOfItsKind(t *testing.T) {
	c, err := parse(t, hooked+`  - {project_id: 42, fleet: gcp}
  - {on: merge, project_id: 42, branch: "release/*", fleet: gcp, vms: [runner-01], image: "runner-{{ .ShortSHA }}"}
  - {on: tag, project_id: 42, fleet: gcp, image_wait: 5m, image: "runner-{{ .Tag }}"}
  - {name: on-failure, on: pipeline, status: failed, sources: [schedule], project_id: 42, fleet: gcp}
`)
	if err != nil {
		t.Fatal(err)
	}
	pipeline, merge, tag, named := c.Triggers[0], c.Triggers[1], c.Triggers[2], c.Triggers[3]
	if pipeline.Name != "pipeline-gcp" || pipeline.On != "pipeline" || pipeline.Status != "success" || pipeline.ImageWait.D() != 0 {
		t.Errorf("%+v", pipeline)
	}
	if merge.Name != "merge-gcp" || merge.ImageWait.D() != time.Hour || merge.Status != "" || !slices.Equal(merge.VMs, []string{"runner-01"}) {
		t.Errorf("%+v", merge)
	}
	if tag.ImageWait.D() != 5*time.Minute || named.Name != "on-failure" || named.Status != "failed" {
		t.Errorf("%+v\n%+v", tag, named)
	}
	if got := c.Webhooks.GitLab.SigningTokens[1].Key(); got != "webhooks.gitlab.signing_tokens[1]" {
		t.Errorf("the second signing token is called %s", got)
	}
}

func TestAMistakeInATriggerIsNamedWithItsPlace(t *testing.T) {
	for trigger, want := range map[string]string{
		`{fleet: gcp}`: `sluice.yaml:9:5: triggers[0]: expected required property project_id to be present`,
		`{on: deploy, project_id: 1, fleet: gcp}`:                      `sluice.yaml:9:10: triggers[0].on: expected value to be one of "pipeline, push, tag, release, merge"`,
		`{project_id: 1, fleet: gpc}`:                                  `sluice.yaml:9:28: triggers[0].fleet: there is no fleet "gpc" (did you mean gcp?)`,
		`{project_id: 1, fleet: gcp, vms: [runner-1]}`:                 `sluice.yaml:9:39: triggers[0].vms[0]: there is no VM "runner-1" in fleet gcp (did you mean runner-01?)`,
		`{project_id: 1, fleet: gcp, vms: [runner-01, runner-01]}`:     `VM "runner-01" is named twice`,
		`{project_id: 0, fleet: gcp}`:                                  `triggers[0].project_id: expected number >= 1`,
		`{project_id: 1, fleet: gcp, brunch: main}`:                    `sluice.yaml:9:33: unknown key triggers[0].brunch (did you mean branch?)`,
		`{project_id: 1, fleet: gcp, image: "{{ .Nothing }}"}`:         `sluice.yaml:9:40: triggers[0].image: the image's name cannot be made: map has no entry for key "Nothing" (known here: .Branch`,
		`{project_id: 1, fleet: gcp, image: "{{ .Ref"}`:                `triggers[0].image: not a template:`,
		`{on: push, project_id: 1, fleet: gcp, image: "{{ .Tag }}"}`:   `has no entry for key "Tag"`,
		`{on: push, project_id: 1, fleet: gcp, status: success}`:       `sluice.yaml:9:51: triggers[0].status: on: push has none (use it with on: pipeline, or leave it out)`,
		`{on: tag, project_id: 1, fleet: gcp, branch: main}`:           `triggers[0].branch: on: tag has none`,
		`{on: push, project_id: 1, fleet: gcp, tag: v1}`:               `triggers[0].tag: on: push has none`,
		`{on: push, project_id: 1, fleet: gcp, sources: [web]}`:        `triggers[0].sources: on: push has none`,
		`{project_id: 1, fleet: gcp, branch: a, tag: b}`:               `a pipeline is of a branch or of a tag`,
		`{on: merge, project_id: 1, fleet: gcp}`:                       `triggers[0].image: is missing: a merge comes before its image is built`,
		`{project_id: 1, fleet: gcp, image_wait: 5m}`:                  `triggers[0].image_wait: waits for no image`,
		`{project_id: 1, fleet: gcp, image: a, image_wait: 73h}`:       `triggers[0].image_wait: longer than 72h`,
		`{project_id: 1, fleet: gcp, image_wait: 60}`:                  `not a positive duration with a unit`,
		"{project_id: 1, fleet: gcp}\n  - {project_id: 2, fleet: gcp}": `sluice.yaml:10:5: triggers[1]: two triggers are called "pipeline-gcp" (give each a name of its own)`,
	} {
		_, err := parse(t, hooked+"  - "+trigger+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", trigger, err, want)
		}
	}
}

func TestTriggersWithoutATokenAreRefused(t *testing.T) {
	_, err := parse(t, minimal+"triggers:\n  - {project_id: 1, fleet: gcp}\n")
	if err == nil || !strings.Contains(err.Error(), "sluice.yaml:7:3: triggers: no event can come: webhooks.gitlab has no token") {
		t.Errorf("got %v", err)
	}
	_, err = parse(t, minimal+"webhooks: {gitlab: {signing_tokens: [whsec_c2VjcmV0]}}\n")
	if err == nil || !strings.Contains(err.Error(), "a secret must not be written into the configuration") || strings.Contains(err.Error(), "c2VjcmV0") {
		t.Errorf("a token in the file: %v", err)
	}
}
