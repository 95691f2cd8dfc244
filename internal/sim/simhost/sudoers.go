package simhost

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// sudoers is a sudoers file as far as such files go here: Cmnd_Alias, one
// command or alias list per rule, runas users, and wildcards in commands.
type sudoers struct {
	aliases map[string][]string
	rules   []sudoRule
}

type sudoRule struct {
	who      string
	runas    []string
	commands []string
}

var (
	aliasLine = regexp.MustCompile(`^Cmnd_Alias\s+([A-Z][A-Z0-9_]*)\s*=\s*(.*)$`)
	ruleLine  = regexp.MustCompile(`^(\S+)\s+\S+\s*=\s*(?:\(([^)]*)\))?\s*((?:[A-Z]+:\s*)*)(.*)$`)
)

func (h *Host) sudoers() sudoers {
	s := sudoers{aliases: map[string][]string{}}
	text := strings.ReplaceAll(h.o.Sudoers, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || strings.HasPrefix(line, "Defaults") || strings.HasPrefix(line, "User_Alias"):
		case aliasLine.MatchString(line):
			m := aliasLine.FindStringSubmatch(line)
			s.aliases[m[1]] = splitCommands(m[2])
		case ruleLine.MatchString(line):
			m := ruleLine.FindStringSubmatch(line)
			runas := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
			if len(runas) == 0 {
				runas = []string{"root"}
			}
			s.rules = append(s.rules, sudoRule{who: m[1], runas: runas, commands: splitCommands(m[4])})
		}
	}
	return s
}

// splitCommands splits at commas that are not escaped.
func splitCommands(text string) []string {
	var out []string
	for _, part := range strings.Split(strings.ReplaceAll(text, `\,`, "\x01"), ",") {
		if part = strings.TrimSpace(strings.ReplaceAll(part, "\x01", ",")); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// allows says whether user may run name with args as target. Commands are
// compared by their base name, since nothing is installed here.
func (s sudoers) allows(user, target, name string, args []string) bool {
	for _, r := range s.rules {
		if r.who != user && r.who != "ALL" && !strings.HasPrefix(r.who, "%") && !strings.HasPrefix(r.who, "SLUICE") {
			continue
		}
		if !slices.Contains(r.runas, target) && !slices.Contains(r.runas, "ALL") {
			continue
		}
		for _, pattern := range s.expand(r.commands) {
			if pattern == "ALL" || matchesCommand(pattern, name, args) {
				return true
			}
		}
	}
	return false
}

func (s sudoers) expand(commands []string) []string {
	var out []string
	for _, c := range commands {
		if list, ok := s.aliases[c]; ok {
			out = append(out, s.expand(list)...)
			continue
		}
		out = append(out, c)
	}
	return out
}

var escaped = strings.NewReplacer(`\=`, "=", `\:`, ":", `\,`, ",", `\\`, `\`)

func matchesCommand(pattern, name string, args []string) bool {
	command, rest, hasArgs := strings.Cut(pattern, " ")
	if path.Base(command) != name {
		return false
	}
	if !hasArgs {
		return true // any arguments
	}
	rest = escaped.Replace(strings.TrimSpace(rest))
	if rest == `""` {
		return len(args) == 0
	}
	if re, ok := strings.CutPrefix(rest, "^"); ok { // sudo 1.9.10: a regular expression
		matched, err := regexp.MatchString("^"+re, strings.Join(args, " "))
		return matched && err == nil
	}
	return wildcard(rest).MatchString(strings.Join(args, " "))
}

// wildcard turns fnmatch without FNM_PATHNAME into a regular expression.
func wildcard(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for _, r := range pattern {
		switch r {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return regexp.MustCompile(b.String() + "$")
}
