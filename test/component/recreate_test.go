//go:build component

package component_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	junit "github.com/joshdk/go-junit"

	"gitlab.com/sluice-runners/sluice/test/component/stage"
)

// include is the pipeline of an including project; inputs are lines of YAML.
func include(inputs ...string) string {
	return "stages: [build, deploy, after]\ninclude:\n" + including(inputs...) + `
build:
  stage: build
  script: [echo "IMAGE=runner-image-2" >build.env]
  artifacts: {reports: {dotenv: build.env}}
after:
  stage: after
  when: always
  script:
    - echo "state=$SLUICE_STATE operations=$SLUICE_OPERATIONS vm=$SLUICE_RUNNER_01_STATE url=$SLUICE_URL"
`
}

func including(inputs ...string) string {
	text := "  - component: $CI_SERVER_FQDN/$CI_PROJECT_PATH/recreate@$CI_COMMIT_SHA\n    inputs:\n"
	for _, input := range inputs {
		text += "      " + input + "\n"
	}
	return text
}

// inputs are the mandatory ones.
func inputs(controller, vms string, more ...string) []string {
	return append([]string{
		"controller: " + controller, "audience: " + stage.Audience, "fleet: " + stage.Fleet, "vms: " + vms, "cli_image: sluice/cli:1.0.0",
	}, more...)
}

// word is what the JUnit report says of a VM, and why.
func (r *pipeline) word(job, vm string) (junit.Status, string) {
	r.t.Helper()
	suites, err := junit.Ingest([]byte(r.artifact(job, "junit.xml")))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, suite := range suites {
		for _, test := range suite.Tests {
			if test.Name == vm {
				return test.Status, fmt.Sprint(test.Error)
			}
		}
	}
	r.t.Fatalf("JUnit has no case for %s", vm)
	return "", ""
}

func TestAPipelineRecreatesAVMAndHandsItsVariablesOn(t *testing.T) {
	t.Parallel()
	issuer := stage.NewIssuer(t)
	issuer.Override = true
	s := stage.Open(t, stage.Options{Issuer: issuer})
	p := newProject(t, include(inputs(s.URL, "runner-01", "image: $IMAGE", "cap: 5m", "on_overrun: wait")...))
	r := p.run(map[string]string{"SLUICE_ID_TOKEN": issuer.Token(t, 7, nil)})
	r.want("recreate-runners", "PASS")
	r.want("after", "PASS")
	if err := s.World.DamageTo("runner-01"); err != nil {
		t.Error(err)
	}
	// The tool knows GitLab's section markers and writes these in their place.
	r.says("recreate-runners", "_1_started", "_1 took ", "shared/runner-01: recreate succeeded in ", "exit status 0: done")
	if status, _ := r.word("recreate-runners", "runner-01"); status != junit.StatusPassed {
		t.Errorf("JUnit: %s", status)
	}
	r.says("after", "state=succeeded operations=op-", "vm=succeeded", "url="+s.URL+"/api/v1/operations/op-")
	var links map[string][]map[string]struct{ Label, URL string }
	if err := json.Unmarshal([]byte(r.artifact("recreate-runners", "annotations.json")), &links); err != nil {
		t.Error(err)
	}
	if l := links["Sluice"]; len(l) != 1 || !strings.HasPrefix(l[0]["external_link"].URL, s.URL) {
		t.Errorf("annotations: %v", links)
	}
	if images := s.Images("runner-01"); len(images) != 1 || images[0] != "runner-image-2" {
		t.Errorf("the new VM's image: %v", images)
	}
}

func TestAVMThatFailsItsGateFailsThePipelineWithItsReason(t *testing.T) {
	t.Parallel()
	issuer := stage.NewIssuer(t)
	s := stage.Open(t, stage.Options{Issuer: issuer, Gate: 3 * time.Second})
	s.BadImage("runner-01")
	p := newProject(t, include(inputs(s.URL, "runner-01")...))
	r := p.run(map[string]string{"SLUICE_ID_TOKEN": issuer.Token(t, 7, nil)})
	r.want("recreate-runners", "FAIL")
	status, why := r.word("recreate-runners", "runner-01")
	if status != junit.StatusFailed {
		t.Errorf("JUnit: %s", status)
	}
	r.says("recreate-runners", "✗ shared/runner-01: recreate failed", "exit status 1: failed")
	_, reason, _ := strings.Cut(r.log("recreate-runners"), "reason: ")
	reason, _, _ = strings.Cut(reason, "\n")
	if reason = strings.TrimSpace(reason); reason == "" || !strings.Contains(why, reason) {
		t.Errorf("the log says %q, JUnit %q", reason, why)
	}
	r.says("after", "state=failed", "vm=failed")
}

func TestACutJobIsAWarningUnlessItIsToFail(t *testing.T) {
	t.Parallel()
	for on, word := range map[string]string{"warn": "WARN", "fail": "FAIL"} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			issuer := stage.NewIssuer(t)
			issuer.Override = true
			s := stage.Open(t, stage.Options{Issuer: issuer, MinJob: 20 * time.Minute, MaxJob: 30 * time.Minute})
			p := newProject(t, include(inputs(s.URL, "runner-01", "cap: 1s", "on_overrun: proceed", "on_cut: "+on)...))
			r := p.run(map[string]string{"SLUICE_ID_TOKEN": issuer.Token(t, 7, nil)})
			r.want("recreate-runners", word)
			r.says("recreate-runners", "a job was cut: job ", "exit status 3: done, but a job was cut")
			r.says("after", "state=job_cut")
		})
	}
}

// The two jobs have keys of their own. Neither is let in: a token without jti could
// be used again by anybody.
func TestTwoIncludesAreTwoJobsOfOnePipeline(t *testing.T) {
	t.Parallel()
	issuer := stage.NewIssuer(t)
	s := stage.Open(t, stage.Options{Issuer: issuer, MaxUnavailable: 2})
	p := newProject(t, "stages: [deploy]\ninclude:\n"+
		including(inputs(s.URL, "runner-01", "job: first", "mode: detach")...)+
		including(inputs(s.URL, "runner-02", "job: second")...))
	r := p.run(map[string]string{"SLUICE_ID_TOKEN": issuer.Token(t, 7, map[string]any{"jti": nil})})
	r.want("first", "FAIL")
	r.want("second", "FAIL")
	r.says("first", "NOT LET IN BY "+s.URL, "code: unauthorized", "next: ")
	if n := s.Keys(); n < 2 {
		t.Errorf("%d Idempotency-Keys of two jobs", n)
	}
}

func TestADetachedJobEndsWhenItsRequestIsAccepted(t *testing.T) {
	t.Parallel()
	issuer := stage.NewIssuer(t)
	s := stage.Open(t, stage.Options{Issuer: issuer})
	p := newProject(t, "stages: [deploy]\ninclude:\n"+including(inputs(s.URL, "runner-01", "job: first", "mode: detach")...))
	r := p.run(map[string]string{"SLUICE_ID_TOKEN": issuer.Token(t, 8, nil)})
	r.want("first", "PASS")
	r.says("first", "mode detach: the controller goes on", "sluice op watch op-")
	if status, _ := r.word("first", "runner-01"); status != junit.StatusSkipped {
		t.Errorf("JUnit: %s", status)
	}
}

func TestARefusalIsInTheJobLogWhole(t *testing.T) {
	t.Parallel()
	issuer := stage.NewIssuer(t)
	s := stage.Open(t, stage.Options{Issuer: issuer})
	for name, c := range map[string]struct {
		inputs []string
		claims map[string]any
		says   []string
	}{
		"a branch that is not protected": {nil, map[string]any{"ref_protected": "false"}, []string{"REFUSED BY " + s.URL, "ref_protected", "code: forbidden", "next: "}},
		"another project":                {nil, map[string]any{"project_id": "43"}, []string{"REFUSED BY", "project_id", "code: forbidden"}},
		"a cap above the rule's":         {[]string{"cap: 2h"}, nil, []string{"REFUSED BY", "30m", "code: forbidden"}},
		"a cap below the fleet's":        {[]string{"cap: 1s"}, nil, []string{"REFUSED BY", "override", "a cap of 1s, shorter than the fleet's own 10m0s", "code: forbidden"}},
		"another audience":               {nil, map[string]any{"aud": "https://vault.example.com"}, []string{"NOT LET IN BY", "code: unauthorized", "audience \"https://vault.example.com\""}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, include(inputs(s.URL, "runner-01", c.inputs...)...))
			r := p.run(map[string]string{"SLUICE_ID_TOKEN": issuer.Token(t, int64(len(name)), c.claims)})
			r.want("recreate-runners", "FAIL")
			r.says("recreate-runners", c.says...)
			state := "refused"
			if name == "another audience" { // nobody knows who asked
				state = "not_asked"
			}
			r.says("after", "state="+state)
			if status, _ := r.word("recreate-runners", "runner-01"); status != junit.StatusError {
				t.Errorf("JUnit: %s", status)
			}
		})
	}
	if err := s.World.DamageTo(); err != nil {
		t.Error(err)
	}
}

func TestAControllerThatIsNotThereFailsThePipelineWithItsURL(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	p := newProject(t, include(inputs(url, "runner-01", "patience: 1s")...))
	r := p.run(map[string]string{"SLUICE_ID_TOKEN": "a.b.c"})
	r.want("recreate-runners", "FAIL")
	r.says("recreate-runners", "NO ANSWER FROM "+url, "next: does "+url+" run")
	if status, why := r.word("recreate-runners", "runner-01"); status != junit.StatusError || !strings.Contains(why, url) {
		t.Errorf("JUnit: %s: %s", status, why)
	}
	r.says("after", "state=not_asked", "url="+url)
}

func TestTheJobRunsOnTheDefaultBranchUnlessRulesSayOtherwise(t *testing.T) {
	t.Parallel()
	p := newProject(t, "include:\n"+including(inputs("https://sluice.example.com", "runner-01")...)+
		including(inputs("https://sluice.example.com", "runner-02", "job: by-hand", "rules: [{if: '$CI_COMMIT_BRANCH', when: manual, allow_failure: true}]", "tags: [ops]")...))
	// With GitLab's own schema for pipelines, but for a default: no tags.
	quiet := []string{"--list-csv", "--ignore-schema-paths", "#/definitions/tags/minItems"}
	on := p.tool(quiet...)
	if !strings.Contains(on, "recreate-runners;") || !strings.Contains(on, "by-hand;") {
		t.Errorf("on the default branch:\n%s", on)
	}
	p.git("checkout", "--quiet", "-b", "feature")
	on = p.tool(quiet...)
	if strings.Contains(on, "recreate-runners;") || !strings.Contains(on, "by-hand;") {
		t.Errorf("on another branch:\n%s", on)
	}
}

func TestInputsThatAreWrongAreRefusedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	good := inputs("https://sluice.example.com", "runner-01")
	for name, c := range map[string]struct {
		inputs []string
		says   string
	}{
		"a shell command for a name": {append(good[:3:3], `vms: 'x"; curl evil'`, good[4]), "vms"},
		"a substitution":             {append(good[:3:3], `vms: '$(id)'`, good[4]), "vms"},
		"no VMs":                     {append(good[:3:3], good[4]), "vms"},
		"a controller without https": {append([]string{"controller: sluice.example.com"}, good[1:]...), "controller"},
		"a policy that is none":      {append(good[:5:5], "on_overrun: kill"), "on_overrun"},
		"a mode that is none":        {append(good[:5:5], "mode: later"), "mode"},
		"a text for a number":        {append(good[:5:5], "parallel: many"), "parallel"},
		"a cap without a unit":       {append(good[:5:5], "cap: '10'"), "cap"},
		"a text for rules":           {append(good[:5:5], "rules: always"), "rules"},
	} {
		t.Run(name, func(t *testing.T) {
			out := newProject(t, "include:\n"+including(c.inputs...)).tool("--list", "--json-schema-validation=false")
			if !strings.Contains(out, "`"+c.says+"` input") {
				t.Errorf("it was accepted, or says not which:\n%s", out)
			}
		})
	}
}
