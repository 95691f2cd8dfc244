package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gitlab.com/sluice-runners/sluice/internal/access"
)

const door = minimal + `server:
  listen: 127.0.0.1:0
  oidc: [{issuer: https://gitlab.example.com, audience: https://sluice.example.com}]
`

const goodRule = door + `access:
  - claims: {project_id: 42, ref: [main, {glob: "release/*"}], ref_protected: "true"}
    allow: [plan, recreate]
    fleets: [gcp]
    vms: [runner-01, {glob: "spare-*"}]
    max_cap: 30m
`

func TestAnAccessRuleIsRead(t *testing.T) {
	c, err := parse(t, goodRule)
	if err != nil {
		t.Fatal(err)
	}
	want := AccessRule{
		Claims: map[string]Claim{
			"project_id": {{Text: "42"}}, "ref": {{Text: "main"}, {Text: "release/*", Glob: true}}, "ref_protected": {{Text: "true"}},
		},
		Allow: []string{"plan", "recreate"}, Fleets: []string{"gcp"},
		VMs: []Text{{Text: "runner-01"}, {Text: "spare-*", Glob: true}}, MaxCap: "30m",
	}
	if diff := cmp.Diff(want, c.Access[0]); diff != "" {
		t.Error(diff)
	}
	if got := c.Access[0].MaxCap.D(); got != 30*time.Minute {
		t.Errorf("max_cap %s", got)
	}
	if err := schema(t).Validate(content(t, []byte(goodRule))); err != nil {
		t.Errorf("an independent validator refuses it: %v", err)
	}
}

func TestAMistakeInAccessIsNamedWithItsLineAndColumn(t *testing.T) {
	in := func(old, replacement string) string {
		if !strings.Contains(goodRule, old) {
			t.Fatalf("the example has no %q", old)
		}
		return strings.Replace(goodRule, old, replacement, 1)
	}
	for name, c := range map[string]struct{ file, want string }{
		"boolean claim": {
			in(`ref_protected: "true"`, `ref_protected: true`),
			`sluice.yaml:10:79: access[0].claims.ref_protected: a claim is never a boolean (GitLab writes it as text: write "true" or "false", in quotes)`,
		},
		"boolean in a list": {in(`[main, {glob: "release/*"}]`, `[main, yes, true]`), `access[0].claims.ref: a claim is never a boolean`},
		"no owner":          {in("project_id: 42, ", ""), `sluice.yaml:10:13: access[0].claims: names none of project_id, namespace_id, project_path, namespace_path (add project_id`},
		"open pattern":      {in("project_id: 42", `project_path: {glob: "*/app"}`), `access[0].claims.project_path: the pattern "*/app" fits groups of anybody (write the name`},
		"look-alikes":       {in("project_id: 42", `namespace_path: {glob: "acme*"}`), `access[0].claims.namespace_path: the pattern "acme*" fits groups of anybody`},
		"any of an initial": {in("project_id: 42", `project_path: [acme/x, {glob: "a?me/*"}]`), `access[0].claims.project_path: the pattern "a?me/*" fits groups of anybody`},
		"ids that begin so": {in("project_id: 42", `project_id: [42, {glob: "4*"}]`), `access[0].claims.project_id: ids are not patterns (list them: project_id: [42, 43])`},
		"a pattern as text": {in(`{glob: "release/*"}`, `"release/*"`), `access[0].claims.ref: the text "release/*" is taken as it stands, and fits nothing (write a pattern as {glob: "release/*"})`},
		"a VM as a pattern": {in(`{glob: "spare-*"}`, `"spare-*"`), `access[0].vms[1]: the text "spare-*" is taken as it stands`},
		"a VM of nobody":    {in("runner-01,", "runner-02,"), `access[0].vms[0]: there is no VM "runner-02" in gcp (did you mean runner-01?)`},
		"a path as an id":   {in("project_id: 42", "project_id: acme/app"), `access[0].claims.project_id: "acme/app" fits nothing: ids are numbers`},
		"a slip":            {in("ref: [main", "reff: [main"), `access[0].claims.reff: is no claim of GitLab's (did you mean ref?)`},
		"blank VMs":         {in("vms: [runner-01, {glob: \"spare-*\"}]", "vms:"), `sluice.yaml:13:5: vms has no value (give it one, or leave it out)`},
		"blank in a list":   {in("runner-01,", "~,"), `sluice.yaml:13:11: an entry without a value`},
		"blank limit":       {in("max_cap: 30m", "max_cap: ~"), `sluice.yaml:14:5: max_cap has no value`},
		"bad pattern":       {in("release/*", "release/["), `access[0].claims.ref: "release/[" is no pattern`},
		"fraction":          {in("project_id: 42", "project_id: 4.2"), `access[0].claims.project_id: neither a text nor a number nor a pattern`},
		"octal":             {in("project_id: 42", "project_id: 042"), `sluice.yaml:10:26: not a plain number`},
		"unknown action":    {in("[plan, recreate]", "[plan, recreates]"), `sluice.yaml:11:19: access[0].allow[1]: expected value to be one of`},
		"no action":         {in("[plan, recreate]", "[]"), `access[0].allow: `},
		"unknown fleet":     {in("[gcp]", "[gpc]"), `sluice.yaml:12:14: access[0].fleets[0]: there is no fleet "gpc" (did you mean gcp?)`},
		"unknown key":       {in("max_cap:", "maxcap:"), `unknown key access[0].maxcap (did you mean max_cap?)`},
		"issuer as a claim": {in("project_id: 42", "project_id: 42, iss: x"), `access[0].claims.iss: is not asked for as a claim (write issuer: beside claims)`},
		"audience as claim": {in("project_id: 42", "project_id: 42, aud: x"), `access[0].claims.aud: is checked for every id_token already`},
		"plain http":        {in("issuer: https:", "issuer: http:"), `sluice.yaml:8:19: server.oidc[0].issuer: not https: whoever is in between could make tokens (write https://)`},
		"no url":            {in("issuer: https://gitlab.example.com", "issuer: gitlab"), `server.oidc[0].issuer: not the URL of an issuer`},
		"other issuer":      {in("  - claims:", "  - issuer: https://gitlab.example.org\n    claims:"), `access[0].issuer: "https://gitlab.example.org" is not in server.oidc (did you mean https://gitlab.example.com?)`},
		"which issuer": {
			in("oidc: [", "oidc: [{issuer: https://gitlab.com, audience: x}, "),
			`access[0]: does not say which issuer it is for, and server.oidc has several (add issuer: each GitLab counts its projects from 1)`,
		},
		"no audience":   {in(", audience: https://sluice.example.com", ""), `server.oidc[0]: expected required property audience to be present`},
		"nobody":        {door, `server.oidc: lets nobody do anything: access is empty`},
		"no issuer":     {in("  oidc: [{issuer: https://gitlab.example.com, audience: https://sluice.example.com}]\n", ""), `access: lets nobody in: server.oidc is empty`},
		"empty claim":   {in("ref: [main,", `ref: ["",`), `access[0].claims.ref`},
		"negative cap":  {in("30m", "-30m"), `access[0].max_cap: `},
		"glob and more": {in(`{glob: "release/*"}`, `{glob: "a", not: "b"}`), `access[0].claims.ref`},
	} {
		_, err := parse(t, c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", name, err, c.want)
		}
	}
}

// The two rooms do not know each other; what they list is the same.
func TestWhatARuleMayAllowIsWhatAccessKnows(t *testing.T) {
	registry, root := schemaOf()
	var listed []string
	for _, e := range under(registry, root, []string{"access", "[0]", "allow", "[0]"}).Enum {
		word, _ := e.(string)
		listed = append(listed, word)
	}
	var known []string
	for _, a := range access.Actions() {
		known = append(known, string(a))
	}
	if diff := cmp.Diff(known, listed); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(owners, access.Owners()) {
		t.Errorf("owners: %v, %v", owners, access.Owners())
	}
}
