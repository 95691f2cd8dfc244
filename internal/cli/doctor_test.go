package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/cli"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

const (
	bad         = "runner-02" // the VM that a fault is planted in
	runnerUnit  = "gitlab-runner.service"
	runnerStart = "ExecStart=/usr/bin/gitlab-runner run --config /etc/gitlab-runner/config.toml\n"
)

// plant is a fault in a world of two VMs, and the codes that doctor must find,
// each with its VM if it has one: those and no others.
type plant struct {
	sudoers  func(shipped string) string
	gitlab   func(*simgitlab.Config)
	host     func(*simhost.Options) // of the bad VM, before it begins
	fault    func(*testing.T, *sim.World)
	config   func(text string) string
	managers int // that there are before the fault; default 2
	want     []string
}

// TestDoctorFindsEachPlantedFaultAndNothingElse asks the program itself: its
// configuration, SSH, HTTP and a provider's commands are the real ones.
func TestDoctorFindsEachPlantedFaultAndNothingElse(t *testing.T) {
	slots := make(chan struct{}, 2)
	for name, p := range plants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			w, config := p.world(t)
			if p.fault != nil {
				p.fault(t, w)
			}
			found, status := examine(t, config)
			for again := 0; starved(found) && again < 5; again++ {
				found, status = examine(t, config)
			}
			if !slices.Equal(found, p.want) {
				t.Errorf("found %q, want %q", found, p.want)
			}
			if want := min(len(p.want), 1); status != want {
				t.Errorf("exit status %d, want %d", status, want)
			}
		})
	}
}

// starved says whether something did not answer in time, which no plant causes
// and a busy machine does.
func starved(found []string) bool {
	return slices.ContainsFunc(found, func(f string) bool {
		code, _, _ := strings.Cut(f, " ")
		return slices.Contains([]string{
			"host-unreachable", "gitlab-unreadable", "provider-unreadable", "runner-token-unproven", "gitlab-token-sight-unknown",
		}, code)
	})
}

func plants() map[string]plant {
	return map[string]plant{
		"nothing": {},
		"nothing beside things that look like faults": {fault: func(_ *testing.T, w *sim.World) {
			removal(w, false)
			override(w, "[Service]\nTimeoutStopSec=5min\n")
		}},
		"a wrong host key": {fault: func(t *testing.T, w *sim.World) { w.Host(bad).WrongHostKey(otherKey(t)) }, want: []string{"host-key-wrong runner-02"}},
		"host keys off":    {config: replacer("host_keys: provider", "host_keys: off"), want: []string{"host-keys-off"}},
		"an SSH user without sudo": {
			sudoers: func(string) string { return "# nobody may anything\n" },
			want:    []string{"sudo-none runner-01", "sudo-none runner-02"},
		},
		"one sudo command missing": {
			sudoers: replacer("    /usr/bin/systemctl daemon-reload, \\\n", ""),
			want:    []string{"sudo-command-refused runner-01", "sudo-command-refused runner-02"},
		},
		"podman as root only, by sudo": {
			sudoers: replacer("fedora ALL = (fedora)", "fedora ALL = (root)"),
			host:    func(o *simhost.Options) { o.RunnerUser = "ci" },
			config:  replacer("runner_user: fedora", "runner_user: ci"),
			want:    []string{"containers-unreadable runner-01", "containers-unreadable runner-02"},
		},
		"podman as root only, by the configuration": {
			sudoers: replacer("fedora ALL = (fedora)", "fedora ALL = (root)"),
			config:  replacer("runner_user: fedora", "runner_user: root"),
			want:    []string{"podman-as-root runner-01", "podman-as-root runner-02"},
		},
		"a unit in /etc that unregisters at its stop": {
			host: unit(runnerStart + "ExecStop=/usr/bin/gitlab-runner unregister --all-runners\n"),
			want: []string{"unregisters-at-stop runner-02"},
		},
		"a remove-registration service enabled": {
			fault: func(_ *testing.T, w *sim.World) { removal(w, true) },
			want:  []string{"unregisters-at-stop runner-02"},
		},
		"KillMode=control-group by an override, with a shell executor": {
			host: func(o *simhost.Options) {
				unit(runnerStart + "KillMode=mixed\n")(o)
				o.Executor = "shell"
			},
			fault: func(_ *testing.T, w *sim.World) { override(w, "[Service]\nKillMode=control-group\n") },
			want:  []string{"kill-mode-hits-jobs runner-02"},
		},
		"a shell as the main process": {
			host: unit(`ExecStart=/bin/sh -c "/usr/bin/gitlab-runner run --config /etc/gitlab-runner/config.toml"` + "\n"),
			want: []string{"main-process-not-runner runner-02"},
		},
		"two runner processes": {
			fault: func(t *testing.T, w *sim.World) {
				w.Host(bad).SecondUnit("gitlab-runner2.service")
				soon(t, "the second runner", func() bool { return active(w.Host(bad), "gitlab-runner2.service") })
			},
			want: []string{"two-runners runner-02"},
		},
		"two [[runners]] entries of different runners": {
			fault: secondEntry,
			want:  []string{"runner-entries-mixed runner-02"},
		},
		"a token with an expiry": {
			gitlab: func(c *simgitlab.Config) {
				c.Runners = []simgitlab.RunnerSpec{{ID: simgitlab.DefaultRunnerID, Token: simgitlab.DefaultRunnerToken, TokenExpiresAt: nextYear()}}
			},
			host: func(o *simhost.Options) { o.TokenExpiresAt = nextYear() }, // its runner has verified the token since
			want: []string{"runner-token-expires", "runner-token-expires runner-02"},
		},
		"a GitLab token without read_api": {
			gitlab: reader(simgitlab.User{Scopes: []string{"read_user"}, Role: simgitlab.RoleOwner}),
			want:   []string{"gitlab-token-scope"},
		},
		"a GitLab token below Reporter in one project": {
			gitlab: func(c *simgitlab.Config) {
				reader(simgitlab.User{
					Scopes: []string{"read_api"}, Role: simgitlab.RoleOwner, Projects: []string{"acme/app"}, Guest: []string{"acme/secret"},
				})(c)
				c.Runners = []simgitlab.RunnerSpec{{
					ID: simgitlab.DefaultRunnerID, Token: simgitlab.DefaultRunnerToken, Type: "project_type", Projects: []string{"acme/app", "acme/secret"},
				}}
			},
			want: []string{"gitlab-token-below-reporter"},
		},
		"the runner paused": {
			fault: func(t *testing.T, w *sim.World) {
				send(t, http.MethodPut, w.URL()+"/api/v4/runners/4711", map[string]any{"paused": true})
			},
			want: []string{"runner-paused"},
		},
		"a system_id shared by two VMs": {
			gitlab: func(*simgitlab.Config) {}, managers: 1, host: machineID, want: []string{"system-id-shared runner-01"},
		},
		"a baked .runner_system_id": {
			host: func(o *simhost.Options) { o.SystemID = "s_0123456789ab" },
			want: []string{"system-id-baked runner-02"},
		},
		"a manager without a VM": {
			fault: func(t *testing.T, w *sim.World) {
				send(t, http.MethodPost, w.URL()+"/api/v4/runners/verify", map[string]any{"token": w.RunnerToken(), "system_id": "s_ba9876543210"})
			},
			want: []string{"manager-without-vm"},
		},
		"a VM without a manager": {
			host:     func(o *simhost.Options) { o.GitLabURL = "http://127.0.0.1:1" }, // where nothing answers it
			managers: 1, want: []string{"vm-without-manager runner-02"},
		},
		"a VM missing at the provider": {
			fault: func(t *testing.T, w *sim.World) {
				list, err := w.Cloud().Describe(t.Context(), bad)
				if err != nil || len(list) != 1 {
					t.Fatalf("%v, %v", list, err)
				}
				w.Cloud().Vanish(list[0].ID)
			},
			want: []string{"vm-missing runner-02"},
		},
		"a VM at the provider that the configuration does not name": {
			fault: func(t *testing.T, w *sim.World) {
				if _, err := w.Cloud().Appear("runner-03", nil); err != nil {
					t.Fatal(err)
				}
				awaitManagers(t, w, 3)
			},
			want: []string{"manager-without-vm", "vm-not-configured"},
		},
		"an identity that may not create VMs": {
			config: replacer("prepare: [toycloud]", `prepare: [sh, -c, "echo compute.instances.create is missing >&2; exit 9"]`),
			want:   []string{"create-forbidden"},
		},
		"an image that is gone": {
			config: replacer("prepare: [toycloud]", `prepare: [sh, -c, "echo there is no image runner-9 >&2; exit 8"]`),
			want:   []string{"image-missing"},
		},
		"a clock ten minutes off": {
			host: func(o *simhost.Options) { o.ClockOff = -10 * time.Minute },
			want: []string{"clock-off runner-02"},
		},
		"a GitLab too old for job_execution_status": {
			gitlab: func(c *simgitlab.Config) { c.Version = "17.11.2" },
			fault: func(_ *testing.T, w *sim.World) {
				w.GitLab().Switch(func(s *simgitlab.Switches) { s.OmitJobExecutionStatus = true })
			},
			want: []string{"gitlab-too-old"},
		},
	}
}

// world starts the plant's world and writes its configuration.
func (p plant) world(t *testing.T) (*sim.World, string) {
	t.Helper()
	rules, err := os.ReadFile("../../deploy/sudoers/sluice")
	if err != nil {
		t.Fatal(err)
	}
	o := sim.Options{Now: time.Now, VMs: 2, Fleet: "lab", Boot: 50 * time.Millisecond, GitLab: p.gitlab, Sudoers: string(rules)}
	if p.sudoers != nil {
		o.Sudoers = p.sudoers(o.Sudoers)
	}
	o.Host = func(h *simhost.Options) {
		if p.host != nil && (h.Name == bad || p.everywhere()) {
			p.host(h)
		}
	}
	w, err := sim.NewWorld(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	cloud, err := serveCloud(w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.close)
	dir := t.TempDir()
	if err := writeConfig(dir, w, cloud.url); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sluice.yaml")
	if p.config != nil {
		rewrite(t, path, p.config)
	}
	p.await(t, w)
	return w, path
}

// everywhere says whether both VMs are made so: where the fault lies in the
// image or in the configuration.
func (p plant) everywhere() bool { return p.config != nil || p.managers == 1 && p.gitlab != nil }

// await waits until the runners have joined.
func (p plant) await(t *testing.T, w *sim.World) {
	t.Helper()
	soon(t, "the hosts and their runners", func() bool {
		for _, vm := range w.Spec().VMs {
			if h := w.Host(vm); h == nil || !h.Up() || !active(h, runnerUnit) {
				return false
			}
		}
		return true
	})
	awaitManagers(t, w, cmp.Or(p.managers, 2))
}

// awaitManagers waits until GitLab knows that many.
func awaitManagers(t *testing.T, w *sim.World, want int) {
	t.Helper()
	instance, err := gitlab.New(gitlab.Config{URL: w.URL(), Token: simgitlab.DefaultWriteToken, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, "the managers", func() bool {
		managers, _, err := instance.Entry(simgitlab.DefaultRunnerID).Managers(t.Context())
		return err == nil && len(managers) == want
	})
}

// examine runs the program and yields what it found, and its exit status.
func examine(t *testing.T, config string) (found []string, status int) {
	t.Helper()
	var out, problems bytes.Buffer
	dir := t.TempDir()
	status = cli.Main(context.WithoutCancel(t.Context()), cli.Env{
		Args: []string{"doctor", "lab", "--output", "json", "--config", config}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &problems,
		Getenv: func(name string) string {
			return map[string]string{"XDG_STATE_HOME": dir, "XDG_CONFIG_HOME": dir}[name]
		},
		Now: time.Now, UID: os.Getuid(),
	})
	var answer struct {
		Reports []struct {
			Findings []struct{ Code, VM, Severity, What, Would, Mend string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || len(answer.Reports) != 1 {
		t.Fatalf("%v\n%s\n%s", err, out.String(), problems.String())
	}
	for _, f := range answer.Reports[0].Findings {
		found = append(found, strings.TrimSpace(f.Code+" "+f.VM))
		if f.Code == "" || f.Severity == "" || f.What == "" || f.Would == "" || f.Mend == "" {
			t.Errorf("the finding leaves something unsaid: %+v", f)
		}
		t.Logf("%+v", f)
	}
	return found, status
}

func rewrite(t *testing.T, path string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replacer panics if there is nothing to replace: the fault would be none.
func replacer(from, to string) func(string) string {
	return func(text string) string {
		if !strings.Contains(text, from) {
			panic("there is no " + from + " in\n" + text)
		}
		return strings.Replace(text, from, to, 1)
	}
}

func unit(service string) func(*simhost.Options) {
	return func(o *simhost.Options) {
		o.UnitText = "[Service]\nUser=fedora\nRestart=always\n" + service + "[Install]\nWantedBy=multi-user.target\n"
	}
}

// machineID is what a cloned image has.
func machineID(o *simhost.Options) { o.MachineID = strings.Repeat("c0ffee00", 4) }

// removal installs what cattle-ops' module has: a service that takes the
// runner's registration away when the machine goes down.
func removal(w *sim.World, enabled bool) {
	h := w.Host(bad)
	h.Files().Put("/usr/local/bin/remove-registration.sh",
		"#!/bin/sh\n# at shutdown\ncurl -s -X DELETE \"https://gitlab.example/api/v4/runners\" --form token=x\n", "root", 0o755)
	h.Files().Put("/etc/systemd/system/remove-registration.service",
		"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nExecStop=/usr/local/bin/remove-registration.sh\n[Install]\nWantedBy=multi-user.target\n", "root", 0o644)
	if enabled {
		h.Enable("remove-registration.service")
	}
}

func override(w *sim.World, text string) {
	h := w.Host(bad)
	h.Files().Put("/etc/systemd/system/gitlab-runner.service.d/90-local.conf", text, "root", 0o644)
	h.Systemd().Reload()
}

func secondEntry(t *testing.T, w *sim.World) {
	const path = "/etc/gitlab-runner/config.toml"
	text, err := w.Host(bad).Files().ReadFile(path, "root")
	if err != nil {
		t.Fatal(err)
	}
	w.Host(bad).Files().Put(path, string(text)+
		"\n[[runners]]\n  name = \"other\"\n  url = \"https://gitlab.example\"\n  id = 4712\n  token = \"glrt-another\"\n  executor = \"custom\"\n", "fedora", 0o600)
}

// reader is a GitLab whose read token is of another kind.
func reader(u simgitlab.User) func(*simgitlab.Config) {
	u.Name, u.Token = "reader", simgitlab.DefaultUserToken
	writer := simgitlab.User{Name: "writer", Token: simgitlab.DefaultWriteToken, Scopes: []string{"api"}, Role: simgitlab.RoleOwner}
	return func(c *simgitlab.Config) { c.Users = []simgitlab.User{u, writer} }
}

func nextYear() time.Time { return time.Now().AddDate(1, 0, 0) }

func otherKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// send makes a call that changes something at GitLab.
func send(t *testing.T, method, url string, body map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Private-Token", simgitlab.DefaultWriteToken)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, url, response.Status)
	}
}

func active(h *simhost.Host, unit string) bool {
	m := h.Systemd()
	if m == nil {
		return false
	}
	for _, p := range m.Show(unit) {
		if p.Name == "SubState" {
			return p.Value == "running"
		}
	}
	return false
}

func soon(t *testing.T, what string, there func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * time.Minute); !there(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never came: %s", what)
		}
	}
}
