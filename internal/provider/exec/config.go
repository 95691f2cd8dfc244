package exec

import (
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The limits of the protocol (docs/providers/exec.md).
const (
	// QuickLimit bounds every call and every reading verb.
	QuickLimit = 20 * time.Second
	// DefaultCommandTimeout ends a create or delete that hangs.
	DefaultCommandTimeout = 60 * time.Minute
)

// Config is one fleet's exec provider.
type Config struct {
	Fleet    string            // the fleet's name, passed along
	Commands map[Verb][]string // argv arrays; never a shell string
	Env      map[string]Value  // added to every command's environment
	Spec     map[string]any    // free; handed to prepare, and to create unless prepare answers with another
	// Timeouts of reading verbs; 0 = QuickLimit, which is also the most.
	Timeouts map[Verb]time.Duration
	// CommandTimeout ends a create or delete; 0 = DefaultCommandTimeout.
	CommandTimeout time.Duration
	// StateDir holds the sessions of long commands. It is absolute, outlives
	// the process and is made with mode 0700. Fleets may share it.
	StateDir string
}

// Value is the value of an environment variable: exactly one field is set. It
// is resolved anew for each command, so that a rotated secret is picked up.
// What File and Env yield is masked in messages.
type Value struct {
	Literal string
	File    string // the file's content without its last newline
	Env     string // a variable of Sluice's own environment
}

var (
	nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	envRule  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Validate refuses a configuration that cannot work. It touches no file.
// Errors: CodeInvalid.
func (c Config) Validate() error {
	if !nameRule.MatchString(c.Fleet) {
		return fleet.Errorf(fleet.CodeInvalid, "exec: the fleet name %q cannot name a directory", c.Fleet).
			WithHint("use letters, digits, dot, dash and underscore")
	}
	if !filepath.IsAbs(c.StateDir) {
		return c.invalid("state_dir %q is not an absolute path", c.StateDir).WithHint("for example /var/lib/sluice/exec")
	}
	if c.CommandTimeout < 0 {
		return c.invalid("command_timeout %s is negative", c.CommandTimeout).WithHint("the default is 1h")
	}
	for _, check := range []func() error{c.validateCommands, c.validateTimeouts, c.validateEnv} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) validateCommands() error {
	for verb, argv := range c.Commands {
		switch {
		case !verb.known():
			return c.invalid("there is no verb %q", verb).WithHint("the verbs are %s", verbNames())
		case len(argv) == 0 || argv[0] == "":
			return c.invalid("%s has no command", verb).WithHint("write an argv array, for example [/opt/vm/%s.sh]", verb)
		}
	}
	for _, verb := range Verbs() {
		if len(c.Commands[verb]) > 0 || verb.Optional() {
			continue
		}
		err := c.invalid("the command for %s is missing", verb)
		if verb == VerbPrepare {
			return err.WithHint("prepare checks the image before anything is deleted; to go without: prepare: [\"true\"]")
		}
		return err.WithHint("docs/providers/exec.md describes each verb")
	}
	return nil
}

func (c Config) validateTimeouts() error {
	for verb, limit := range c.Timeouts {
		switch {
		case !verb.known():
			return c.invalid("timeouts: there is no verb %q", verb).WithHint("the verbs are %s", verbNames())
		case verb.Long():
			return c.invalid("timeouts: %s is a long command", verb).WithHint("its limit is command_timeout")
		case limit <= 0 || limit > QuickLimit:
			return c.invalid("timeouts: %s for %s is out of range", limit, verb).WithHint("use more than 0 and at most %s", QuickLimit)
		}
	}
	return nil
}

func (c Config) validateEnv() error {
	for name, value := range c.Env {
		set := 0
		for _, field := range []string{value.Literal, value.File, value.Env} {
			if field != "" {
				set++
			}
		}
		switch {
		case !envRule.MatchString(name):
			return c.invalid("env: %q is not a variable name", name).WithHint("use letters, digits and underscore")
		case strings.HasPrefix(name, "SLUICE_"):
			return c.invalid("env: %s is reserved", name).WithHint("names that begin with SLUICE_ are set by Sluice")
		case set > 1:
			return c.invalid("env: %s has more than one source", name).WithHint("give a value, a file or an env, one of them")
		}
	}
	return nil
}

func (c Config) invalid(format string, args ...any) *fleet.Error {
	return fleet.Errorf(fleet.CodeInvalid, "fleet %s: provider exec: "+format, append([]any{c.Fleet}, args...)...)
}

func (c Config) timeout(verb Verb) time.Duration {
	if limit := c.Timeouts[verb]; limit > 0 {
		return limit
	}
	return QuickLimit
}

func (c Config) commandTimeout() time.Duration {
	if c.CommandTimeout > 0 {
		return c.CommandTimeout
	}
	return DefaultCommandTimeout
}

func verbNames() string {
	var names []string
	for _, verb := range Verbs() {
		names = append(names, string(verb))
	}
	return strings.Join(names, ", ")
}
