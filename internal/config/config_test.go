package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const minimal = `fleets:
  gcp:
    vms: {names: [runner-01]}
    provider: {exec: {list: [l], describe: [d], prepare: ["true"], create: [c], delete: [x]}}
    host: {user: fedora, key: {file: /nowhere/key}}
`

func noEnv(string) (string, bool) { return "", false }

func parse(t *testing.T, text string) (*Config, error) {
	t.Helper()
	return Parse("sluice.yaml", []byte(text), noEnv)
}

func TestAMinimalFileGetsTheDocumentedDefaults(t *testing.T) {
	c, err := parse(t, minimal)
	if err != nil {
		t.Fatal(err)
	}
	spec := c.Specs()["gcp"]
	if spec.Drain != fleet.DefaultDrainPolicy() {
		t.Errorf("drain policy %+v, want the default", spec.Drain)
	}
	if spec.MaxUnavailable != 1 || spec.GateOnline != 10*time.Minute || spec.GitLabURL != "https://gitlab.com" {
		t.Errorf("spec %+v", spec)
	}
	if spec.HasGitLab || spec.HasRunnerToken {
		t.Error("a fleet without tokens claims to have one")
	}
	if got := spec.Host; got.RunnerUser != "fedora" || got.Unit != "gitlab-runner.service" || got.ConfigPath != "/etc/gitlab-runner/config.toml" {
		t.Errorf("host %+v", got)
	}
	if want := strings.TrimSuffix(c.Store.SQLite, ".db") + ".sock"; c.Server.Socket != want {
		t.Errorf("socket %s, want %s", c.Server.Socket, want)
	}
}

// Every kind of mistake in the file is refused with its place and what to
// write instead.
func TestAMistakeIsNamedWithItsLineAndColumn(t *testing.T) {
	with := func(extra string) string { return minimal + extra }
	inHost := func(old, replacement string) string { return strings.Replace(minimal, old, replacement, 1) }
	for name, c := range map[string]struct{ file, want string }{
		"unknown key": {
			with("    drain: {capp: 5m}\n"),
			`sluice.yaml:6:13: unknown key fleets.gcp.drain.capp (did you mean cap?)`,
		},
		"unknown key at the top": {
			with("sever: {}\n"), `sluice.yaml:6:1: unknown key sever (did you mean server?)`,
		},
		"key in the wrong case": {
			with("    drain: {Cap: 5m}\n"), `sluice.yaml:6:13: unknown field "Cap"`,
		},
		"duplicate key": {
			with("store: {}\nstore: {}\n"), `sluice.yaml:7:1: mapping key "store" already defined at [6:1]`,
		},
		"bad indentation": {
			"fleets:\n  a: [\n", `sluice.yaml:2:6: sequence end token ']' not found`,
		},
		"empty": {"", `sluice.yaml: the file is empty`},
		"duration without a unit": {
			with("    drain: {cap: 600}\n"),
			`sluice.yaml:6:18: fleets.gcp.drain.cap: not a positive duration with a unit (write 45s, 10m or 1h30m)`,
		},
		"zero duration": {
			with("    drain: {cap: 0s}\n"), `sluice.yaml:6:18: the duration 0s is not positive (leave the key out for the default)`,
		},
		"word that is not known": {
			with("    drain: {on_overrun: procede}\n"),
			`sluice.yaml:6:25: fleets.gcp.drain.on_overrun: expected value to be one of "proceed, wait, abort"`,
		},
		"hard cap below the cap": {
			with("    drain: {on_overrun: wait, hard_cap: 5m}\n"), `sluice.yaml:6:12: fleets.gcp.drain: hard_cap 5m0s is shorter than cap 10m0s (raise hard_cap)`,
		},
		"text for a number": {
			with("    rollout: {max_unavailable: many}\n"), `sluice.yaml:6:32: fleets.gcp.rollout.max_unavailable: expected integer`,
		},
		"zero budget": {
			with("    rollout: {max_unavailable: 0}\n"), `sluice.yaml:6:32: fleets.gcp.rollout.max_unavailable: expected number >= 1`,
		},
		"secret in the file": {
			inHost("key: {file: /nowhere/key}", "key: very-secret"),
			`sluice.yaml:5:31: fleets.gcp.host.key: a secret must not be written into the configuration (write {file: PATH}, {env: NAME} or {credential: NAME})`,
		},
		"secret in two places": {
			inHost("{file: /nowhere/key}", "{file: a, env: B}"),
			`sluice.yaml:5:31: fleets.gcp.host.key: a secret has exactly one place (write {file: PATH}, {env: NAME} or {credential: NAME})`,
		},
		"missing host": {
			strings.Replace(minimal, "    host: {user: fedora, key: {file: /nowhere/key}}\n", "", 1),
			`fleets.gcp: expected required property host to be present`,
		},
		"names and prefix": {
			inHost("{names: [runner-01]}", "{names: [a], prefix: b, count: 2}"), `sluice.yaml:3:10: fleets.gcp.vms: has names and a prefix (give one of them)`,
		},
		"no VM": {
			inHost("{names: [runner-01]}", "{prefix: b}"), `fleets.gcp.vms: names no VM (give names: [a, b], or prefix and count)`,
		},
		"a VM twice": {
			inHost("[runner-01]", "[a, a]"), `fleets.gcp.vms: VM "a" is named twice`,
		},
		"no provider": {
			inHost(`{exec: {list: [l], describe: [d], prepare: ["true"], create: [c], delete: [x]}}`, "{}"), `fleets.gcp.provider: names no provider`,
		},
		"GitLab without a runner id": {
			with("gitlab: {token: {env: T}}\n"), `fleets.gcp.runner.id: is missing, and gitlab.token is given`,
		},
		"TCP without tokens": {
			with("server: {listen: ':8080'}\n"), `server.listen: is open to nobody: server.tokens and server.oidc are empty`,
		},
		"socket path too long": {
			with("server: {socket: /" + strings.Repeat("x", 110) + "}\n"), `is too long for a Unix socket`,
		},
		"URL with a password": {
			with("gitlab: {url: 'https://me:pw@gitlab.example.com'}\n"), `sluice.yaml:6:15: gitlab.url: not an http(s) URL without a user`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, c.file)
			if err == nil {
				t.Fatal("the file was accepted")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
			if fleet.CodeOf(err) != fleet.CodeInvalid {
				t.Errorf("code %s, want invalid", fleet.CodeOf(err))
			}
			for _, secret := range []string{"very-secret", "me:pw"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the message repeats a secret: %s", err)
				}
			}
		})
	}
}

func TestEveryMistakeIsNamedAtOnce(t *testing.T) {
	_, err := parse(t, minimal+"    drain: {capp: 5m, hard_cap: 3}\n")
	if got := strings.Count(err.Error(), "\n") + 1; got != 2 {
		t.Errorf("%d lines, want 2: %s", got, err)
	}
}

func TestTheEnvironmentOverridesSingleValues(t *testing.T) {
	env := map[string]string{"SLUICE_STORE_SQLITE": "/tmp/other.db", "SLUICE_LOG_LEVEL": "debug", "SLUICE_GITLAB_URL": "https://other.example.com/"}
	c, err := Parse("sluice.yaml", []byte(minimal), func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	if c.Store.SQLite != "/tmp/other.db" || c.Server.Socket != "/tmp/other.sock" || c.Log.Level != "debug" || c.GitLab.URL != "https://other.example.com" {
		t.Errorf("%+v %+v %+v %+v", c.Store, c.Server, c.Log, c.GitLab)
	}
	env["SLUICE_LOG_LEVEL"] = "loud"
	_, err = Parse("sluice.yaml", []byte(minimal), func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	if err == nil || !strings.Contains(err.Error(), "$SLUICE_LOG_LEVEL") {
		t.Errorf("a level that is not known was accepted: %v", err)
	}
}

func TestMembersAreNamedOrCounted(t *testing.T) {
	got := strings.Join(VMs{Prefix: "r-", Count: 3, Width: 2}.List(), " ")
	if got != "r-01 r-02 r-03" {
		t.Errorf("got %s", got)
	}
}

func TestASecretThatCannotBeReadNamesKeyPlaceAndMend(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	for name, c := range map[string]struct {
		secret Secret
		want   []string
	}{
		"file":       {Secret{File: "/nowhere/key"}, []string{"file /nowhere/key cannot be read: no such file or directory", "write the secret there, readable by the user"}},
		"empty file": {Secret{File: filepath.Join(dir, "empty")}, []string{"empty is empty"}},
		"directory":  {Secret{File: dir}, []string{"cannot be read: is a directory", "read access"}},
		"variable":   {Secret{Env: "SLUICE_TEST_UNSET"}, []string{"environment variable SLUICE_TEST_UNSET is not set"}},
		"credential": {Secret{Credential: "ssh-key"}, []string{"systemd credential ssh-key", "LoadCredential=ssh-key:PATH"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.secret.key = "fleets.gcp.host.key"
			_, err := c.secret.Value()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range append(c.want, "fleets.gcp.host.key") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

func TestASecretIsReadFromEachPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	t.Setenv("SLUICE_TEST_TOKEN", " s3cret ")
	for _, s := range []Secret{{File: filepath.Join(dir, "token")}, {Env: "SLUICE_TEST_TOKEN"}, {Credential: "token"}} {
		if got, err := s.Value(); err != nil || got != "s3cret" {
			t.Errorf("%s: %q, %v", s.place(), got, err)
		}
	}
}

func TestAMissingFileSaysWhereItWasLookedFor(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv(EnvFile, "")
	if _, err := os.Stat("/etc/sluice/sluice.yaml"); err == nil {
		t.Skip("this machine has a configuration of its own")
	}
	_, err := Find("")
	if err == nil || !strings.Contains(err.Error(), "/etc/sluice/sluice.yaml") || !strings.Contains(err.Error(), "--config FILE") {
		t.Errorf("got %v", err)
	}
}
