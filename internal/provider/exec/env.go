package exec

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// inherited lists what commands get of Sluice's own environment: what tools
// need to run, and no credentials.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
}

// environment builds a command's environment. Errors: CodeInvalid.
func (p *Provider) environment(req request) ([]string, error) {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	configured, err := p.configured()
	if err != nil {
		return nil, err
	}
	env = append(env, configured...)
	facts := []struct{ name, value string }{
		{"VERB", string(req.Verb)},
		{"FLEET", req.Fleet},
		{"VM", req.VM},
		{"INSTANCE", req.Instance},
		{"IMAGE", req.Image},
		{"OPERATION", req.Operation},
		{"TOKEN", req.Token},
		{"STATE", p.stateDir()},
	}
	for _, fact := range facts {
		if fact.value != "" {
			env = append(env, "SLUICE_"+fact.name+"="+fact.value)
		}
	}
	if req.Attempt > 0 {
		env = append(env, "SLUICE_ATTEMPT="+strconv.Itoa(req.Attempt))
	}
	return env, nil
}

func (p *Provider) configured() ([]string, error) {
	var env, secrets []string
	for name, value := range p.cfg.Env {
		text, err := value.resolve()
		if err != nil {
			return nil, p.cfg.invalid("env: %s has no value: %w", name, err).
				WithHint("make it readable for the user that runs Sluice")
		}
		if strings.ContainsRune(text, 0) {
			return nil, p.cfg.invalid("env: %s holds a zero byte", name).WithHint("an environment variable cannot")
		}
		env = append(env, name+"="+text)
		if value.Literal == "" {
			secrets = append(secrets, maskable(text)...)
		}
	}
	slices.Sort(env)
	p.secrets.Store(&secrets)
	return env, nil
}

func (v Value) resolve() (string, error) {
	switch {
	case v.File != "":
		raw, err := os.ReadFile(v.File)
		return strings.TrimRight(string(raw), "\r\n"), err
	case v.Env != "":
		text, ok := os.LookupEnv(v.Env)
		if !ok {
			return "", fmt.Errorf("the variable %s is not set", v.Env)
		}
		return text, nil
	default:
		return v.Literal, nil
	}
}

// minSecret is the shortest text that is masked: shorter ones would mask
// words that only look alike.
const minSecret = 6

// maskable yields the lines of a secret that are long enough to mask.
func maskable(secret string) []string {
	var lines []string
	for line := range strings.SplitSeq(secret, "\n") {
		if len(line) >= minSecret {
			lines = append(lines, line)
		}
	}
	return lines
}

// mask replaces what came from files and variables in a text for people.
func (p *Provider) mask(text string) string {
	secrets := p.secrets.Load()
	if secrets == nil {
		return text
	}
	for _, secret := range *secrets {
		text = strings.ReplaceAll(text, secret, "[masked]")
	}
	return text
}

// checkName refuses names that could leave their directory or that no cloud
// takes (cases.md T92: a bad name never gets better by repeating).
func checkName(what, name string) error {
	if nameRule.MatchString(name) {
		return nil
	}
	return fleet.Errorf(fleet.CodeInvalid, "the %s %q is not a usable name", what, name).
		WithHint("use letters, digits, dot, dash and underscore")
}
