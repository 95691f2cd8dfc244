package runnerhost

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

func (w *world) inspect() *fleet.HostFacts {
	w.t.Helper()
	f, err := w.hosts.Inspect(w.t.Context(), w.target())
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// refusal is what preflight says of the host.
func (w *world) refusal() string {
	w.t.Helper()
	err := fleet.RefuseHost(w.target().Ref, testSettings(), w.inspect())
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAGoodHostIsInspectedAndNotRefused(t *testing.T) {
	w := newWorld(t, nil)
	f := w.inspect()
	if err := fleet.RefuseHost(w.target().Ref, testSettings(), f); err != nil {
		t.Fatalf("refused: %v\n%+v", err, f)
	}
	if !f.Reading.Complete() || !f.UnitLoaded || f.UnitPath != "/etc/systemd/system/gitlab-runner.service" {
		t.Errorf("unit: %+v", f)
	}
	if len(f.RunnerPIDs) != 1 || f.RunnerPIDs[0] != f.Reading.Unit.MainPID || len(f.MainCommand) < 2 || f.MainCommand[1] != "run" {
		t.Errorf("process: pids %v, argv %q", f.RunnerPIDs, f.MainCommand)
	}
	if len(f.RunnerUnits) > 0 && f.RunnerUnits[0] != "gitlab-runner.service" {
		t.Errorf("units = %q", f.RunnerUnits)
	}
	if !strings.Contains(f.ExecStart, "gitlab-runner run") || f.StopTimeout == "" || f.KillSignal != 15 {
		t.Errorf("settings: %q %q %d", f.ExecStart, f.StopTimeout, f.KillSignal)
	}
	if len(f.SystemIDs) != 1 || f.SystemIDs[0] != w.SystemID() || !f.ConfigKnown {
		t.Errorf("identity: %q", f.SystemIDs)
	}
	if !f.HasPidwait || !strings.HasPrefix(f.Systemd, "systemd ") || !strings.HasPrefix(f.Podman, "podman ") {
		t.Errorf("tools: %v %q %q", f.HasPidwait, f.Systemd, f.Podman)
	}
}

func TestATokenIsHashedOnTheHost(t *testing.T) {
	w := newWorld(t, nil)
	w.Files().Put("/etc/gitlab-runner/config.toml", `concurrent = 2
[session_server]
  session_timeout = 1800
[[runners]] # the first
  name = "it's = \"one\" # here"
  url = 'https://gitlab.example'   # a comment
  id = 42
  token = "glrt-t1_secretsecretsecret"
  token_expires_at = 0001-01-01T00:00:00Z
  executor = "custom"
  [runners.custom]
    token = "not this one"
[[runners]]
  name = "two"
  token = "glrt-other"
  token_expires_at = 2030-02-03T04:05:06Z
`, "fedora", 0o600)
	l, _, err := w.hosts.connection(t.Context(), w.target())
	if err != nil {
		t.Fatal(err)
	}
	text, err := scriptInspect.text("n", testSettings())
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.run(t.Context(), scriptInspect.command(), text, 20*time.Second)
	if err != nil || strings.Contains(string(out.stdout)+string(out.stderr), "secretsecret") {
		t.Fatalf("the token crossed the wire, or %v", err)
	}
	f := w.inspect()
	sum := sha256.Sum256([]byte("glrt-t1_secretsecretsecret"))
	if len(f.Entries) != 2 {
		t.Fatalf("entries = %+v", f.Entries)
	}
	one := f.Entries[0]
	if one.TokenPrefix != "glrt-" || one.TokenSHA256 != hex.EncodeToString(sum[:]) || one.ID != 42 ||
		one.URL != "https://gitlab.example" || one.Executor != "custom" || !one.TokenExpiresAt.IsZero() {
		t.Errorf("first entry = %+v", one)
	}
	if two := f.Entries[1]; two.Name != "two" || two.TokenExpiresAt.Year() != 2030 {
		t.Errorf("second entry = %+v", two)
	}
	if said := w.refusal(); !strings.Contains(said, "token expires") {
		t.Errorf("refusal = %q", said)
	}
}

func TestTheHostsOwnEntryHasTheHashOfTheFleetsToken(t *testing.T) {
	w := newWorld(t, nil)
	sum := sha256.Sum256([]byte(simgitlab.DefaultRunnerToken))
	f := w.inspect()
	if len(f.Entries) != 1 || f.Entries[0].TokenSHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("entries = %+v", f.Entries)
	}
}

// cases T51, T60: a shutdown script ends the token of the whole fleet.
func TestWhatUnregistersAtAStopIsFound(t *testing.T) {
	const unit = "[Unit]\nDescription=x\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
	for name, c := range map[string]struct{ file, text, script, want string }{
		"ExecStop of the unit": {
			file: "/etc/systemd/system/gitlab-runner.service.d/10-x.conf",
			text: "[Service]\nExecStop=/usr/local/bin/gitlab-runner unregister --all-runners\n", want: "gitlab-runner.service: /usr/local/bin/gitlab-runner unregister",
		},
		"a unit of its own": {
			file: "/etc/systemd/system/gitlab-runner-unregister.service",
			text: unit + "ExecStart=/bin/true\nExecStop=/usr/bin/gitlab-runner \\\n  unregister --name x\n[Install]\nWantedBy=multi-user.target\n",
			want: "gitlab-runner-unregister.service: /usr/bin/gitlab-runner",
		},
		"a script that asks the API": {
			file: "/etc/systemd/system/bye.service", text: unit + "ExecStopPost=-/bin/sh /opt/bye.sh now\n",
			script: "#!/bin/sh\ncurl --request DELETE \\\n  \"$URL/api/v4/runners\" --form token=x\n", want: "bye.service: /opt/bye.sh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.Files().Put(c.file, c.text, "root", 0o644)
			w.Files().Put("/opt/bye.sh", c.script, "root", 0o755)
			w.Enable(path.Base(c.file))
			w.Systemd().Reload()
			f := w.inspect()
			if len(f.Unregisters) != 1 || !strings.HasPrefix(f.Unregisters[0], c.want) {
				t.Fatalf("unregisters = %q", f.Unregisters)
			}
			if said := w.refusal(); !strings.Contains(said, c.want) {
				t.Errorf("refusal = %q", said)
			}
		})
	}
}

func TestWhatOtherUnitsUnregisterIsNoneOfOurs(t *testing.T) {
	w := newWorld(t, nil)
	w.Files().Put("/usr/lib/systemd/system/systemd-binfmt.service",
		"[Service]\nExecStart=/usr/lib/systemd/systemd-binfmt\nExecStop=/usr/lib/systemd/systemd-binfmt --unregister\n", "root", 0o644)
	w.Files().Put("/etc/systemd/system/gitlab-runner.service.d/10-x.conf",
		"[Service]\n# ExecStop=gitlab-runner unregister, no more\nExecStop=/bin/true\n", "root", 0o644)
	w.Systemd().Reload()
	f := w.inspect()
	if len(f.Unregisters) != 0 || w.refusal() != "" {
		t.Errorf("unregisters = %q, refusal %q", f.Unregisters, w.refusal())
	}
	if len(f.ExecStop) != 1 || f.ExecStop[0] != "/bin/true" {
		t.Errorf("ExecStop = %q", f.ExecStop)
	}
}

func TestBadHostsAreRefusedWithTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*world)
		want  []string
	}{
		"a second runner unit": {func(w *world) { w.SecondUnit("other-runner.service") }, []string{"2 gitlab-runner processes"}},
		"podman missing":       {func(w *world) { w.Uninstall("podman") }, []string{"podman is not installed"}},
		"two system_ids": {func(w *world) {
			if err := w.Files().Chmod("/home", 0o755); err != nil {
				w.t.Fatal(err)
			}
			w.Files().Put("/home/fedora/.gitlab-runner/.runner_system_id", "s_000000000000\n", "fedora", 0o644)
		}, []string{"2 system_ids", "s_000000000000"}},
		"sudo refused": {func(w *world) { w.RefuseSudo("systemctl", "stop") }, []string{"sudo refuses systemctl stop --no-block gitlab-runner.service"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			c.spoil(w)
			w.Systemd().Reload()
			var said string
			w.eventually("a refusal", func() bool { said = w.refusal(); return said != "" })
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in %q", want, said)
				}
			}
		})
	}
}

func TestAUnitThatIsNotThereIsNamed(t *testing.T) {
	w := newWorld(t, nil)
	w.hosts.o.Settings.Unit = "other.service"
	settings := testSettings()
	settings.Unit = "other.service"
	err := fleet.RefuseHost(w.target().Ref, settings, w.inspect())
	if err == nil || !strings.Contains(err.Error(), "no unit other.service") {
		t.Errorf("preflight: %v", err)
	}
	_, err = w.hosts.StopIntake(t.Context(), w.target(), w.order(fleet.OrderStop))
	if fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(err.Error(), "other.service: not-found") {
		t.Errorf("stop: %v", err)
	}
}

// case T27: a wrapper swallows the signal, and intake stays open.
func TestAWrappedRunnerIsRefused(t *testing.T) {
	settings := testSettings()
	f := &fleet.HostFacts{UnitLoaded: true, MainCommand: []string{"/bin/bash", "-c", "gitlab-runner run"}}
	if err := fleet.RefuseHost(fleet.Ref{}, settings, f); err == nil || !strings.Contains(err.Error(), "wrapper") {
		t.Errorf("err = %v", err)
	}
}

// facts/runner-host.md, Looking: root's empty list is a false idle.
func TestContainersAreReadAsTheRunnersUser(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) { o.RunnerUser = "gitlab-runner" })
	w.job(time.Minute)
	if r := w.look(); !r.ContainersKnown || len(r.Containers) != 1 {
		t.Errorf("containers = %+v (%s)", r.Containers, r.Problem)
	}
}

// What doctor asks beyond what a host is refused for.
func TestWhatWeakensAHostIsInspected(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) {
		o.ClockOff = -10 * time.Minute
		o.SystemID = "s_0123456789ab"
	})
	own := w.SystemID()
	w.Files().Put("/etc/systemd/system/gitlab-runner.service.d/90-local.conf", "[Service]\n# Restart=no\nKillMode=mixed\n TimeoutSec = 5\nNice=3\nExecStop=\n", "root", 0o644)
	w.Systemd().Reload()
	f := w.inspect()
	var keys []string
	for _, o := range f.Overrides {
		if o.File == "/etc/systemd/system/gitlab-runner.service.d/90-local.conf" {
			keys = append(keys, o.Key)
		}
	}
	if strings.Join(keys, " ") != "ExecStop KillMode TimeoutSec" || f.KillMode != "mixed" || f.UnitUser != "fedora" {
		t.Errorf("unit: %v of %v, %s, %s", keys, f.Overrides, f.KillMode, f.UnitUser)
	}
	if off := f.ClockOff; off > -9*time.Minute || off < -10*time.Minute {
		t.Errorf("the clock is off by %s", off)
	}
	if f.SystemIDs[0] != own || own != "s_0123456789ab" || len(f.OwnSystemIDs) != 1 || f.OwnSystemIDs[0] == own {
		t.Errorf("identity: %v, own %v", f.SystemIDs, f.OwnSystemIDs)
	}
	w.stop() // the drop-in is ours, and no override
	if after := w.inspect(); len(after.Overrides) != len(f.Overrides) {
		t.Errorf("overrides after a stop: %v", after.Overrides)
	}
}

func TestAHostOfItsOwnImageHasTheSystemIDOfItsMachineID(t *testing.T) {
	w := newWorld(t, nil)
	if f := w.inspect(); len(f.OwnSystemIDs) != 1 || f.OwnSystemIDs[0] != w.SystemID() || f.ClockOff != 0 || len(f.SudoErr) != 0 {
		t.Errorf("%v, %s, %q", f.OwnSystemIDs, f.ClockOff, f.SudoErr)
	}
}

// gitlab-runner's common/system_id_state.go: the first 12 hex digits of
// HMAC-SHA256(machine-id, "gitlab-runner"), here by
// printf gitlab-runner | openssl dgst -sha256 -hmac c0ffee00c0ffee00c0ffee00c0ffee00.
func TestASystemIDIsMadeAsGitLabRunnerMakesIt(t *testing.T) {
	const wantSystemID = "s_5d7de2e06c4a"
	w := newWorld(t, func(o *simhost.Options) { o.MachineID = "c0ffee00c0ffee00c0ffee00c0ffee00" })
	if f := w.inspect(); w.SystemID() != wantSystemID || f.OwnSystemIDs[0] != wantSystemID {
		t.Errorf("%s and %v, want %s", w.SystemID(), f.OwnSystemIDs, wantSystemID)
	}
}
