package config

import (
	"net"
	"net/url"
	"regexp"

	"github.com/goccy/go-yaml/ast"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// plainName is what a fleet or VM may be called: it goes into paths, labels
// and host names.
var plainName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

// maxSocket is how long a Unix socket's path may be (sys/un.h: 108 with its
// final zero).
const maxSocket = 107

// check finds what no schema can: things that do not fit together.
func (c *Config) check(document ast.Node) []*problem {
	l := &lint{document: document}
	if u, err := url.Parse(c.GitLab.URL); err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil {
		l.add("not an http(s) URL without a user", "write https://gitlab.example.com", "gitlab", "url")
	}
	if c.GitLab.WriteToken != nil && c.GitLab.Token == nil {
		l.add("is given, and gitlab.token is not", "lost jobs are found with gitlab.token (scope read_api): set it, or leave write_token out", "gitlab", "write_token")
	}
	for _, fleetName := range c.Names() {
		if !plainName.MatchString(fleetName) {
			l.add("a fleet's name is lower-case letters, digits, dots, dashes", "", "fleets", fleetName)
		}
		l.fleet(c, fleetName)
	}
	l.server(c)
	l.access(c)
	l.triggers(c)
	return l.found
}

type lint struct {
	document ast.Node
	found    []*problem
}

func (l *lint) add(text, hint string, path ...string) {
	node, _ := locate(l.document, path)
	l.found = append(l.found, refuse(node, where(path)+": "+text, hint))
}

func (l *lint) fleet(c *Config, name string) {
	f := c.Fleets[name]
	l.members(name, f.VMs)
	l.provider(name, f.Provider)
	l.registration(c, name)
	if c.GitLab.Token != nil && f.Runner.ID == 0 && f.Runner.Registration != string(fleet.RegistrationIndividual) {
		l.add("is missing, and gitlab.token is given", "set it to GitLab's number of the runner entry; without it GitLab cannot be asked about this fleet", "fleets", name, "runner", "id")
	}
	if err := f.Drain.Policy().Validate(); err != nil {
		l.add(err.Error(), "", "fleets", name, "drain")
	}
}

func (l *lint) members(fleetName string, v VMs) {
	at := []string{"fleets", fleetName, "vms"}
	switch {
	case len(v.Names) > 0 && (v.Prefix != "" || v.Count > 0):
		l.add("has names and a prefix", "give one of them", at...)
		return
	case len(v.Names) == 0 && (v.Prefix == "" || v.Count == 0):
		l.add("names no VM", "give names: [a, b], or prefix and count", at...)
		return
	}
	seen := map[string]bool{}
	for _, vm := range v.List() {
		if !plainName.MatchString(vm) {
			l.add("VM "+quoted(vm)+": a name is lower-case letters, digits, dots, dashes", "", at...)
		}
		if seen[vm] {
			l.add("VM "+quoted(vm)+" is named twice", "", at...)
		}
		seen[vm] = true
	}
}

func (l *lint) provider(fleetName string, p Provider) {
	if p.Exec == nil {
		l.add("names no provider", "give exec: {…}", "fleets", fleetName, "provider")
	}
}

func (l *lint) server(c *Config) {
	if len(c.Server.Socket) > maxSocket {
		l.add("the socket's path "+c.Server.Socket+" is too long for a Unix socket", "set server.socket to a shorter one, for example /run/sluice/sluice.sock", "server", "socket")
	}
	if c.Server.Listen != "" {
		if _, _, err := net.SplitHostPort(c.Server.Listen); err != nil {
			l.add("not host:port", "write 127.0.0.1:8080", "server", "listen")
		}
		if len(c.Server.Tokens)+len(c.Server.OIDC) == 0 {
			l.add("is open to nobody: server.tokens and server.oidc are empty", "make a token with `sluice token create NAME`, or leave listen out", "server", "listen")
		}
	}
	seen := map[string]bool{}
	for _, t := range c.Server.Tokens {
		if seen[t.Name] {
			l.add("two tokens are called "+quoted(t.Name), "", "server", "tokens")
		}
		seen[t.Name] = true
	}
}
