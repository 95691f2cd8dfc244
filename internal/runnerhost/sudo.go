package runnerhost

import (
	"path"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// rootCommand is one command that the scripts run through sudo, as root or, with
// asRunner, as the runner's user. deploy/sudoers lists the same ones: a test
// compares this list with the file and with the scripts, in both directions.
type rootCommand struct {
	argv     []string
	asRunner bool
	optional bool // used only where the login cannot read the file itself
}

// rootCommands lists every command that needs sudo for a login that is not root.
func rootCommands(s fleet.HostSettings) []rootCommand {
	dir := "/run/systemd/system/" + s.Unit + ".d"
	dropin, order, draft := dir+"/zz-sluice-drain.conf", dir+"/zz-sluice-drain.order", dir+"/zz-sluice-drain.new"
	return []rootCommand{
		{argv: []string{"mkdir", "-p", dir}},
		{argv: []string{"tee", draft}},
		{argv: []string{"mv", "-f", draft, dropin}},
		{argv: []string{"mv", "-f", draft, order}},
		{argv: []string{"rm", "-f", dropin}},
		{argv: []string{"systemctl", "daemon-reload"}},
		{argv: []string{"systemctl", "stop", "--no-block", s.Unit}},
		{argv: []string{"systemctl", "start", "--no-block", s.Unit}},
		{argv: []string{"systemctl", "kill", "--signal=SIGTERM", "--kill-whom=main", s.Unit}},
		{argv: []string{"cat", s.ConfigPath}, optional: true},
		{argv: []string{"cat", path.Dir(s.ConfigPath) + "/.runner_system_id"}, optional: true},
		{argv: []string{"timeout", "-k", "1", "8", "podman", "ps", "--format", "json"}, asRunner: true},
	}
}

// asked counts the commands that sudo is asked for.
func asked(s fleet.HostSettings) int {
	n := 0
	for _, c := range rootCommands(s) {
		if !c.optional && !c.asRunner {
			n++
		}
	}
	return n
}

// wantedCommands is the shell function that asks sudo for each of them. What the
// runner's user does is not asked: the list of containers shows it.
func wantedCommands(s fleet.HostSettings) string {
	var b strings.Builder
	b.WriteString("wanted() {\n")
	for _, c := range rootCommands(s) {
		if c.optional || c.asRunner {
			continue
		}
		b.WriteString("    may")
		for _, arg := range c.argv {
			b.WriteString(" " + quote(arg))
		}
		b.WriteString("\n")
	}
	b.WriteString("}\n")
	return b.String()
}
