package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/spelling"
)

// owners are the claims of which every rule names one. The others are true of
// anybody's project: on gitlab.com a rule with ref_protected alone would let in
// the world.
var owners = []string{"project_id", "namespace_id", "project_path", "namespace_path"}

// access checks who is let in by id_token, and for what.
func (l *lint) access(c *Config) {
	l.issuers(c.Server.OIDC)
	switch {
	case len(c.Server.OIDC) > 0 && len(c.Access) == 0:
		l.add("lets nobody do anything: access is empty", "add a rule to access, for example {claims: {project_id: 42}, allow: [recreate], fleets: [NAME]}", "server", "oidc")
	case len(c.Access) > 0 && len(c.Server.OIDC) == 0:
		l.add("lets nobody in: server.oidc is empty", "set server.oidc: [{issuer: https://gitlab.example.com, audience: https://sluice.example.com}]", "access")
	}
	for i := range c.Access {
		l.rule(c, c.Access[i], fmt.Sprintf("[%d]", i))
	}
}

func (l *lint) issuers(list []Issuer) {
	seen := map[string]bool{}
	for i, issuer := range list {
		at := []string{"server", "oidc", fmt.Sprintf("[%d]", i), "issuer"}
		if seen[issuer.Issuer] {
			l.add("the issuer is there twice", "", at...)
		}
		seen[issuer.Issuer] = true
		if text, hint := badIssuer(issuer.Issuer); text != "" {
			l.add(text, hint, at...)
		}
	}
}

func badIssuer(text string) (what, hint string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		return "not the URL of an issuer", "write https://gitlab.example.com, letter by letter as in the claim iss"
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "not https: whoever is in between could make tokens", "write https://"
	}
	return "", ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (l *lint) rule(c *Config, rule AccessRule, index string) {
	at := func(more ...string) []string { return append([]string{"access", index}, more...) }
	known := make([]string, len(c.Server.OIDC))
	for i, issuer := range c.Server.OIDC {
		known[i] = issuer.Issuer
	}
	switch {
	case rule.Issuer != "" && !slices.Contains(known, rule.Issuer):
		l.add(quoted(rule.Issuer)+" is not in server.oidc", meant(rule.Issuer, known), at("issuer")...)
	case rule.Issuer == "" && len(known) > 1:
		l.add("does not say which issuer it is for, and server.oidc has several", "add issuer: each GitLab counts its projects from 1", at()...)
	}
	l.claims(rule.Claims, at)
	for i, name := range rule.Fleets {
		if c.Fleets[name] == nil {
			l.add("there is no fleet "+quoted(name), meant(name, c.Names()), at("fleets", fmt.Sprintf("[%d]", i))...)
		}
	}
	for i, vm := range rule.VMs {
		l.pattern(vm, at("vms", fmt.Sprintf("[%d]", i))...)
		l.member(c, rule.Fleets, vm, at("vms", fmt.Sprintf("[%d]", i))...)
	}
}

// member refuses a VM that no fleet of a rule has. No fleets = all of them.
func (l *lint) member(c *Config, fleets []string, vm Text, at ...string) {
	if len(fleets) == 0 {
		fleets = c.Names()
	}
	var members []string
	for _, name := range fleets {
		if f := c.Fleets[name]; f != nil {
			members = append(members, f.VMs.List()...)
		}
	}
	if !vm.Glob && !strings.ContainsAny(vm.Text, "*?") && !slices.Contains(members, vm.Text) {
		l.add("there is no VM "+quoted(vm.Text)+" in "+strings.Join(fleets, ", "), meant(vm.Text, members), at...)
	}
}

// gitLabClaims are the claims of GitLab's id_tokens ("OpenID Connect (OIDC)
// Authentication Using ID tokens", GitLab docs). Others may come with a newer
// GitLab: only what looks like a slip is refused.
var gitLabClaims = []string{
	"sub", "namespace_id", "namespace_path", "project_id", "project_path", "project_visibility", "user_id", "user_login", "user_email", "user_access_level",
	"user_identities", "groups_direct", "pipeline_id", "pipeline_source", "job_id", "ref", "ref_type", "ref_path", "ref_protected", "environment",
	"environment_protected", "deployment_tier", "environment_action", "runner_id", "runner_environment", "sha", "ci_config_ref_uri", "ci_config_sha",
	"job_project_id", "job_project_path", "job_namespace_id", "job_namespace_path", "root_namespace_id", "target_audience", "iss", "aud", "exp", "nbf", "iat", "jti",
}

func (l *lint) claims(claims map[string]Claim, at func(...string) []string) {
	owned := false
	for name, claim := range claims {
		owned = owned || slices.Contains(owners, name)
		switch name {
		case "iss":
			l.add("is not asked for as a claim", "write issuer: beside claims", at("claims", name)...)
		case "aud", "exp", "nbf", "iat", "jti":
			l.add("is checked for every id_token already", "leave it out", at("claims", name)...)
		}
		if near := spelling.Nearest(name, gitLabClaims); near != "" && !slices.Contains(gitLabClaims, name) {
			l.add("is no claim of GitLab's", "did you mean "+near+"?", at("claims", name)...)
		}
		for _, text := range claim {
			l.pattern(text, at("claims", name)...)
			if strings.HasSuffix(name, "_id") && !text.Glob && strings.Trim(text.Text, "0123456789") != "" {
				l.add(quoted(text.Text)+" fits nothing: ids are numbers", "see the project's or the group's page in GitLab; a path has its own claim, such as project_path", at("claims", name)...)
			}
			if text.Glob && slices.Contains(owners, name) {
				l.ownerPattern(name, text.Text, at("claims", name)...)
			}
		}
	}
	if !owned {
		l.add("names none of "+strings.Join(owners, ", "), "add project_id: without it every project of the instance fits", at("claims")...)
	}
}

// ownerPattern refuses what somebody else's project could fit: ids have no
// beginning in common, and anybody may call a group acme-too.
func (l *lint) ownerPattern(name, pattern string, at ...string) {
	literal, _, _ := strings.Cut(pattern, "/")
	switch {
	case strings.HasSuffix(name, "_id"):
		l.add("ids are not patterns", "list them: "+name+": [42, 43]", at...)
	case literal == pattern || strings.ContainsAny(literal, `*?[\`):
		l.add("the pattern "+quoted(pattern)+" fits groups of anybody", "write the name of your group and a slash first: {glob: \"acme/*\"}", at...)
	}
}

func (l *lint) pattern(t Text, at ...string) {
	_, err := path.Match(t.Text, "")
	switch {
	case t.Glob && err != nil:
		l.add(quoted(t.Text)+" is no pattern", "a [ needs its ]; write \\[ for the character itself", at...)
	case !t.Glob && strings.ContainsAny(t.Text, "*?"): // no name of GitLab's has one
		l.add("the text "+quoted(t.Text)+" is taken as it stands, and fits nothing", "write a pattern as {glob: "+quoted(t.Text)+"}", at...)
	}
}
