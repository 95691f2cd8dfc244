package runnerhost

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

//go:embed scripts/*.sh
var scriptFiles embed.FS

// A script is what is sent to `sh -s` on a host: a first line that names it,
// variables, functions, and a last line that calls them. A shell that gets only
// a part of it, because the connection was cut, has defined some functions.
type script struct {
	name   string
	pieces []string      // files below scripts/, without .sh
	limit  time.Duration // how long the host gives it
}

var (
	scriptLook    = script{"look", []string{"base", "dropin", "reading", "look"}, 20 * time.Second}
	scriptGlance  = script{"glance", []string{"base", "dropin", "reading", "glance"}, 10 * time.Second}
	scriptWait    = script{"wait", []string{"base", "dropin", "reading", "wait"}, 20 * time.Second}
	scriptInspect = script{"inspect", []string{
		"base", "dropin", "reading", "processes", "config", "shutdown", "sudo", "inspect",
	}, 40 * time.Second}
	scriptStop    = script{"stop", []string{"base", "dropin", "order", "reading", "stop"}, 40 * time.Second}
	scriptStart   = script{"start", []string{"base", "dropin", "order", "reading", "start"}, 40 * time.Second}
	scriptRelease = script{"release", []string{"base", "dropin", "order", "reading", "release"}, 40 * time.Second}
	scriptEnd     = script{"end", []string{"base", "dropin", "order", "end"}, 40 * time.Second}
)

// variable is one shell variable that a script is sent with.
type variable struct{ name, value string }

// text composes the script. The nonce marks its answer.
func (s script) text(nonce string, settings fleet.HostSettings, more ...variable) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# sluice: %s\n", s.name)
	for _, v := range append([]variable{
		{"nonce", nonce},
		{"unit", settings.Unit},
		{"config", settings.ConfigPath},
		{"runner_user", settings.RunnerUser},
	}, more...) {
		fmt.Fprintf(&b, "%s=%s\n", v.name, quote(v.value))
	}
	if s.name == scriptInspect.name {
		b.WriteString(wantedCommands(settings))
	}
	for _, piece := range s.pieces {
		content, err := scriptFiles.ReadFile("scripts/" + piece + ".sh")
		if err != nil {
			return "", fleet.Errorf(fleet.CodeInternal, "script %s: %w", piece, err)
		}
		b.Write(content)
	}
	b.WriteString("main </dev/null; exit\n")
	return b.String(), nil
}

// command is the line given to the login shell, which may be any: it holds
// nothing that shells differ about. The host's own timeout ends what a cut
// connection leaves behind (facts/providers.md section 7).
func (s script) command() string {
	return fmt.Sprintf("timeout -k 2 %d sh -s", int(s.limit.Seconds()))
}

// orderVariables are the variables of an order.
func orderVariables(o fleet.Order) []variable {
	takeOver := "no"
	if o.TakeOver {
		takeOver = "yes"
	}
	return []variable{
		{"owner", o.Owner},
		{"operation", o.Operation},
		{"number", strconv.FormatInt(o.Number, 10)},
		{"order_boot", o.BootID},
		{"take_over", takeOver},
	}
}

// quote makes text one word of any POSIX shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

var (
	unitName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:_.@-]*\.service$`)
	userName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*\$?$`)
	filePath = regexp.MustCompile(`^/[A-Za-z0-9_./@+-]+$`)
	oneWord  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@/+-]*$`)
)

// checkSettings completes and checks what the scripts are sent with. Errors:
// CodeInvalid.
func checkSettings(s fleet.HostSettings) (fleet.HostSettings, error) {
	if s.Unit != "" && !strings.Contains(s.Unit, ".") {
		s.Unit += ".service"
	}
	if s.RunnerUser == "" {
		s.RunnerUser = s.User
	}
	for _, field := range []struct {
		name, value, want string
		pattern           *regexp.Regexp
	}{
		{"host.user", s.User, "a Unix login name", userName},
		{"host.runner_user", s.RunnerUser, "a Unix login name", userName},
		{"host.unit", s.Unit, "a systemd service, for example gitlab-runner.service", unitName},
		{"host.config", s.ConfigPath, "an absolute path, for example /etc/gitlab-runner/config.toml", filePath},
	} {
		if !field.pattern.MatchString(field.value) {
			return s, fleet.Errorf(fleet.CodeInvalid, "%s is %q", field.name, field.value).WithHint("set it to %s", field.want)
		}
	}
	return s, nil
}

// checkOrder refuses an order that the host's files could not carry. Errors:
// CodeInvalid.
func checkOrder(o fleet.Order, want fleet.OrderVerb) error {
	switch {
	case o.Verb != want:
		return fleet.Errorf(fleet.CodeInvalid, "an order to %q was given to the act %q", o.Verb, want)
	case !oneWord.MatchString(o.Owner), !oneWord.MatchString(o.Operation):
		return fleet.Errorf(fleet.CodeInvalid, "an order needs an owner and an operation of plain characters, not %q and %q", o.Owner, o.Operation)
	case o.Number <= 0:
		return fleet.Errorf(fleet.CodeInvalid, "an order needs a number above 0, not %d", o.Number)
	case o.BootID != "" && !oneWord.MatchString(o.BootID):
		return fleet.Errorf(fleet.CodeInvalid, "an order's boot id is %q", o.BootID)
	}
	return nil
}
