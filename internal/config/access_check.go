package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
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
	}
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
		for _, text := range claim {
			l.pattern(text, at("claims", name)...)
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
	if _, err := path.Match(t.Text, ""); t.Glob && err != nil {
		l.add(quoted(t.Text)+" is no pattern", "a [ needs its ]; write \\[ for the character itself", at...)
	}
}
