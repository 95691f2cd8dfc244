package doctor

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestAHealthyFleetIsClean(t *testing.T) {
	report := newWard().examine(t)
	if len(report.Findings) != 0 || len(report.Examined) != 2 || report.At != noon {
		t.Errorf("%+v", report)
	}
}

// Each illness has one finding that says what it is, what it would cause and
// how to mend it.
func TestEachIllnessIsFoundWithItsMend(t *testing.T) {
	found := map[Code]bool{}
	for name, c := range map[string]struct {
		ill      func(*ward)
		severity Severity
		vm       string
		check    string
		what     string
		mend     string
	}{
		"no such VM": {
			func(w *ward) { w.instances = w.instances[1:] }, SeverityWarning, "a", "reach",
			"the provider knows no VM of this name", "sluice create gcp/a",
		},
		"two instances": {
			func(w *ward) { w.instances = append(w.instances, fleet.Instance{ID: "i-2", VM: "a"}) }, SeverityError, "a", "reach",
			"2 instances of this name: i-a and i-2", "by its id",
		},
		"off": {
			func(w *ward) { w.instances[0].Presence = fleet.PresenceOff }, SeverityWarning, "a", "reach", "instance i-a is off", "start it",
		},
		"no address": {
			func(w *ward) { w.instances[0].Address = "" }, SeverityError, "a", "reach", "has no address", "reports one",
		},
		"provider down": {
			func(w *ward) { w.listErr = fleet.Errorf(fleet.CodeUnavailable, "list hangs").WithHint("see its log") }, SeverityError, "", "provider",
			"list hangs", "see its log",
		},
		"an instance too many": {
			func(w *ward) {
				w.instances = append(w.instances, fleet.Instance{ID: "i-9", VM: "c", Presence: fleet.PresenceRunning})
			}, SeverityWarning, "", "provider", `instance i-9 of a VM "c"`, "add it to vms",
		},
		"no right to create": {
			func(w *ward) {
				w.prepare = fleet.Errorf(fleet.CodeForbidden, "gcp/a: compute.instances.create is missing").WithHint("grant it")
			}, SeverityError, "", "provider", "compute.instances.create is missing", "grant it",
		},
		"no image": {
			func(w *ward) { w.prepare = fleet.Errorf(fleet.CodeImageMissing, "there is no image runner-9") }, SeverityError, "", "provider",
			"there is no image runner-9", "build the image",
		},
		"no template": {
			func(w *ward) { w.prepare = fleet.Errorf(fleet.CodeInvalid, "the template has no network") }, SeverityError, "", "provider",
			"the template has no network", "the finding says",
		},
		"no quota": {
			func(w *ward) { w.prepare = fleet.Errorf(fleet.CodeQuota, "the quota CPUS is used up") }, SeverityWarning, "", "provider",
			"the quota CPUS is used up", "raise the quota",
		},
		"a provider that says nothing of creating": {
			func(w *ward) { w.prepare = fleet.Errorf(fleet.CodeUnavailable, "prepare hangs") }, SeverityWarning, "", "provider",
			"prepare hangs", "try again",
		},
		"an old systemd": {
			func(w *ward) { w.facts["a"].Systemd = "systemd 239 (239-82.el8)" }, SeverityWarning, "a", "units", "systemd 239 is older than 246", "newer systemd",
		},
		"out of reach": {
			func(w *ward) {
				w.inspect["a"] = fleet.Errorf(fleet.CodeUnavailable, "gcp/a: connection refused").WithHint("is sshd up?")
			}, SeverityError, "a", "reach", "connection refused", "is sshd up?",
		},
		"wrong host key": {
			func(w *ward) {
				w.inspect["a"] = fleet.Errorf(fleet.CodeConflict, "gcp/a: the host key is another one").WithHint("find out why")
			}, SeverityError, "a", "reach", "the host key is another one", "find out why",
		},
		"no unit": {
			func(w *ward) { w.facts["a"].UnitLoaded = false }, SeverityError, "a", "units", "there is no unit gitlab-runner.service", "host.unit",
		},
		"wrapped in a shell": {
			func(w *ward) { w.facts["a"].MainCommand = []string{"/bin/sh", "-c", "gitlab-runner run"} }, SeverityError, "a", "units",
			"a wrapper swallows SIGQUIT", "ExecStart=",
		},
		"two runners": {
			func(w *ward) { w.facts["a"].RunnerPIDs = []int{100, 200} }, SeverityError, "a", "units", "2 gitlab-runner processes", "one runner unit",
		},
		"unregisters at stop": {
			func(w *ward) { w.facts["a"].Unregisters = []string{"cleanup.service"} }, SeverityError, "a", "units", "unregisters its runner at shutdown (cleanup.service)", "disable it",
		},
		"sudo refused": {
			func(w *ward) { w.facts["a"].SudoErr = "systemctl daemon-reload" }, SeverityError, "a", "sudo", "sudo refuses systemctl daemon-reload to fedora", "deploy/sudoers/sluice",
		},
		"podman missing": {
			func(w *ward) { w.facts["a"].PodmanErr = "podman: not found" }, SeverityError, "a", "units", "podman: not found", "host.runner_user",
		},
		"token with expiry on the host": {
			func(w *ward) { w.facts["a"].Entries[0].TokenExpiresAt = noon }, SeverityError, "a", "token", "the runner's token expires", "FF_DISABLE_AUTOMATIC_TOKEN_ROTATION",
		},
		"unknown to GitLab": {
			func(w *ward) { w.managers = w.managers[1:] }, SeverityError, "a", "identity", "GitLab knows no manager with system_id s_a under runner 7", "config.toml",
		},
		"cloned": {
			func(w *ward) { w.facts["b"].SystemIDs = []string{"s_a"} }, SeverityError, "a", "identity", "system_id s_a is on 2 hosts: a, b", "machine-id",
		},
		"two managers": {
			func(w *ward) { w.managers = append(w.managers, w.managers[0]) }, SeverityWarning, "a", "identity", "2 managers with system_id s_a", "stale",
		},
		"offline": {
			func(w *ward) { w.managers[0].Status = "offline" }, SeverityWarning, "a", "identity", "calls its manager offline", "journalctl",
		},
		"older GitLab": {
			func(w *ward) { w.managers[0].Execution = fleet.ExecutionUnknown }, SeverityWarning, "", "gitlab", "GitLab 17.11.2 does not say whether a manager runs a job", "GitLab 18",
		},
		"foreign token": {
			func(w *ward) { w.facts["a"].Entries[0].TokenSHA256 = "bb" }, SeverityWarning, "a", "identity", "runner.token is not the token in the VMs' config.toml: no", "put the token of the hosts' config.toml",
		},
		"GitLab token wrong": {
			func(w *ward) {
				w.gitlabErr = fleet.Errorf(fleet.CodeForbidden, "GitLab answered 401").WithHint("put a valid one into gitlab.token")
			}, SeverityError, "", "gitlab", "GitLab answered 401", "gitlab.token",
		},
		"GitLab token without scope": {
			func(w *ward) { w.token = TokenInfo{Scopes: []string{"read_user"}} }, SeverityError, "", "token", "the scopes read_user, not read_api", "read_api",
		},
		"GitLab token ends soon": {
			func(w *ward) { w.token.ExpiresAt = noon.Add(24 * time.Hour) }, SeverityWarning, "", "token", "expires 2030-01-02", "rotate",
		},
		"write token without scope": {
			func(w *ward) { w.write = TokenInfo{Scopes: []string{"read_api"}, CanRead: true} }, SeverityWarning, "", "token", "the scopes read_api, not api", "gitlab.write_token",
		},
		"write token refused": {
			func(w *ward) { w.writeErr = fleet.Errorf(fleet.CodeForbidden, "GitLab answered 401") }, SeverityWarning, "", "token", "401", "gitlab.write_token",
		},
		"write token ends soon": {
			func(w *ward) { w.write.ExpiresAt = noon.Add(24 * time.Hour) }, SeverityWarning, "", "token", "the write token expires 2030-01-02", "rotate",
		},
		"write token of a reporter": {
			func(w *ward) { w.unwritable = []string{"acme/app"} }, SeverityWarning, "", "token", "less than a Developer in acme/app", "Maintainer",
		},
		"recovery asked for without a write token": {
			func(w *ward) { w.spec.HasWriteToken, w.spec.Recovery.Asked = false, true }, SeverityWarning, "", "token", "there is no gitlab.write_token", "gitlab.write_token",
		},
		"cut jobs to be retried with recovery off": {
			func(w *ward) { w.spec.Recovery = fleet.RecoveryPolicy{CutJobs: true} }, SeverityWarning, "", "token", "recover_orphans is off", "recover_orphans on",
		},
		"paused": {
			func(w *ward) { w.paused = true }, SeverityWarning, "", "gitlab", "runner 7 is paused", "resume",
		},
		"runner token dead": {
			func(w *ward) { w.tokenErr = fleet.Errorf(fleet.CodeForbidden, "GitLab refuses the runner token") }, SeverityError, "", "token", "GitLab refuses the runner token; a, b run with the same token", "a live entry",
		},
		"wrong runner token in the configuration": {
			func(w *ward) {
				w.tokenErr = fleet.Errorf(fleet.CodeForbidden, "GitLab refuses it").WithHint("see runner.token")
				w.sum = "cc"
			}, SeverityError, "", "token",
			"runner.token is not the token in the VMs' config.toml (a, b run with another one), and GitLab refuses it", "put the token of the hosts' config.toml",
		},
		"runner token refused, hosts' config.toml unread": {
			func(w *ward) {
				w.tokenErr = fleet.Errorf(fleet.CodeForbidden, "GitLab refuses it")
				w.facts["a"].Entries, w.facts["b"].Entries = nil, nil
			}, SeverityError, "", "token", "no host's config.toml could be compared", "before anything is changed in GitLab",
		},
		"runner token unknown": {
			func(w *ward) { w.tokenErr = fleet.Errorf(fleet.CodeUnavailable, "GitLab answered 500") }, SeverityWarning, "", "token", "GitLab answered 500", "",
		},
		"runner token expires": {
			func(w *ward) { w.expiry = noon.Add(time.Hour) }, SeverityError, "", "token", "the runner token expires 2030-01-01T13:00:00Z", "remove the expiry",
		},
		"systemd silent": {
			func(w *ward) { w.facts["a"].SystemdError = "no answer" }, SeverityError, "a", "units", "systemd does not answer", "systemctl show",
		},
		"outside its unit": {
			func(w *ward) { w.facts["a"].RunnerPIDs = []int{7} }, SeverityError, "a", "units", "outside of gitlab-runner.service", "host.unit",
		},
		"another config": {
			func(w *ward) {
				w.spec.Host.ConfigPath = "/etc/gitlab-runner/config.toml"
				w.facts["a"].MainCommand = []string{"gitlab-runner", "run", "--config", "/srv/config.toml"}
			}, SeverityError, "a", "units", "the runner uses /srv/config.toml", "host.config",
		},
		"two system_ids": {
			func(w *ward) { w.facts["a"].SystemIDs = []string{"s_a", "s_c"} }, SeverityError, "a", "identity", "the host has 2 system_ids", "leave one",
		},
		"config unread": {
			func(w *ward) { w.facts["a"].ConfigKnown = false }, SeverityError, "a", "identity", "config.toml cannot be read", "host.config",
		},
		"no sudo at all, nor what needs it": {
			func(w *ward) {
				f := w.facts["a"]
				f.SudoErr, f.SudoNone, f.ConfigKnown, f.SystemIDs, f.Entries = "systemctl daemon-reload", true, false, nil, nil
			}, SeverityError, "a", "sudo", "sudo refuses systemctl daemon-reload to fedora", "deploy/sudoers/sluice",
		},
		"login refused": {
			func(w *ward) { w.inspect["a"] = fleet.Errorf(fleet.CodeForbidden, "the host refuses the login") }, SeverityError, "a", "reach",
			"the host refuses the login", "authorized_keys",
		},
		"no coreutils": {
			func(w *ward) { w.inspect["a"] = fleet.Errorf(fleet.CodeInvalid, "the login cannot run timeout") }, SeverityError, "a", "reach",
			"the login cannot run timeout", "missing on the host",
		},
		"host keys off": {
			func(w *ward) { w.anyKey = true }, SeverityWarning, "", "reach", "any host key is taken", "host.host_keys",
		},
		"a stop hits the jobs": {
			func(w *ward) {
				f := w.facts["a"]
				f.KillMode, f.Entries[0].Executor = "control-group", "shell"
				f.Overrides = []fleet.Override{{File: "/etc/systemd/system/u.d/90-x.conf", Key: "KillMode"}}
			}, SeverityWarning, "a", "units", "KillMode=control-group with a shell executor, set by /etc/systemd/system/u.d/90-x.conf", "KillMode=mixed",
		},
		"a late override": {
			func(w *ward) {
				w.facts["a"].Overrides = []fleet.Override{
					{File: "/etc/u.d/zzz.conf", Key: "Restart"},
					{File: "/etc/u.d/zzz.conf", Key: "KillMode"},
					{File: "/etc/u.d/zz-sluice-drain.conf", Key: "Restart"},
					{File: "/etc/u.d/99-x.conf", Key: "Restart"},
				}
			}, SeverityError, "a", "units", "/etc/u.d/zzz.conf, /etc/u.d/zz-sluice-drain.conf would win over zz-sluice-drain.conf", "sorts before",
		},
		"two runner entries": {
			func(w *ward) {
				w.facts["a"].Entries = append(w.facts["a"].Entries, fleet.RunnerEntry{Name: "other", ID: 8, TokenSHA256: "bb"})
			}, SeverityWarning, "a", "identity", `serves 2 runner entries: "a" (id 0), "other" (id 8)`, "one [[runners]] entry",
		},
		"podman as root": {
			func(w *ward) { w.spec.Host.RunnerUser = "root"; w.facts["a"].UnitUser = "fedora" }, SeverityWarning, "a", "units",
			"host.runner_user is root, but the runner runs as fedora", "the user of the unit",
		},
		"clock behind": {
			func(w *ward) { w.facts["a"].ClockOff = -10 * time.Minute }, SeverityWarning, "a", "units", "the host's clock is 10m0s behind", "NTP",
		},
		"baked system_id": {
			func(w *ward) { w.facts["a"].OwnSystemIDs = []string{"s_own"} }, SeverityWarning, "a", "identity", "says s_a, but this machine's machine-id makes it s_own", "from the image",
		},
		"a stranger": {
			func(w *ward) {
				w.managers = append(w.managers, fleet.Manager{ID: 9, Execution: fleet.ExecutionIdle, SystemID: "s_z", Status: "online", ContactedAt: noon})
			}, SeverityWarning, "", "identity", "manager 9 (system_id s_z) has contacted GitLab at 2030-01-01T12:00:00Z", "add it to vms",
		},
		"blind in a project": {
			func(w *ward) { w.unseen = []string{"acme/secret"} }, SeverityWarning, "", "token", "less than a Reporter in acme/secret", "Reporter role",
		},
		"its sight unknown": {
			func(w *ward) { w.unseenErr = fleet.Errorf(fleet.CodeUnavailable, "GitLab answered 500") }, SeverityWarning, "", "token",
			"GitLab answered 500", "try again",
		},
		"no GitLab token": {
			func(w *ward) { w.spec.HasGitLab = false }, SeverityWarning, "", "token", "there is no GitLab token", "read_api",
		},
		"neither token": {
			func(w *ward) { w.spec.HasGitLab, w.spec.HasRunnerToken = false, false }, SeverityError, "", "token", "neither a GitLab token nor a runner token", "runner.token",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard()
			c.ill(w)
			report := w.examine(t)
			if len(report.Findings) != 1 {
				t.Fatalf("%d findings: %+v", len(report.Findings), report.Findings)
			}
			f := report.Findings[0]
			found[f.Code] = true
			if f.Severity != c.severity || f.VM != c.vm || f.Check != c.check || !strings.Contains(f.What, c.what) || !strings.Contains(f.Mend, c.mend) {
				t.Errorf("%+v", f)
			}
			if f.Would == "" {
				t.Error("it is not said what it would cause")
			}
		})
	}
	for _, k := range Catalog() {
		if !ofEntries(k.Code) && k.Check != "webhook" && k.Code != CodeNoManagerSeen && !found[k.Code] {
			t.Errorf("no case is found as %s", k.Code)
		}
	}
}

// What is normal and looks like an illness.
func TestALookalikeIsNoFinding(t *testing.T) {
	for name, change := range map[string]func(*ward){
		"control-group with a custom executor": func(w *ward) { w.facts["a"].KillMode, w.facts["a"].Entries[0].Executor = "control-group", "custom" },
		"mixed with a shell executor":          func(w *ward) { w.facts["a"].KillMode, w.facts["a"].Entries[0].Executor = "mixed", "shell" },
		"an override that a drain wins over": func(w *ward) {
			w.facts["a"].Overrides = []fleet.Override{{File: "/etc/systemd/system/u.d/90-x.conf", Key: "TimeoutStopSec"}}
		},
		"one token in two sections": func(w *ward) { w.facts["a"].Entries = append(w.facts["a"].Entries, w.facts["a"].Entries[0]) },
		"a clock half a minute off": func(w *ward) { w.facts["a"].ClockOff = 30 * time.Second },
		"a random system_id": func(w *ward) {
			w.facts["a"].SystemIDs[0], w.managers[0].SystemID, w.facts["a"].OwnSystemIDs = "r_a", "r_a", []string{"s_own"}
		},
		"its own system_id": func(w *ward) { w.facts["a"].OwnSystemIDs = []string{"s_other", "s_a"} },
		"root's podman with the docker executor": func(w *ward) {
			w.spec.Host.RunnerUser, w.facts["a"].UnitUser, w.facts["a"].Entries[0].Executor = "root", "fedora", "docker"
			w.facts["b"].UnitUser = "root"
		},
		"the manager of an earlier incarnation": func(w *ward) {
			w.managers[0].CreatedAt = noon
			w.managers = append(w.managers, fleet.Manager{ID: 9, Execution: fleet.ExecutionIdle, SystemID: "s_old", Status: "online", ContactedAt: noon.Add(-time.Minute)})
		},
		"a manager long gone": func(w *ward) {
			w.managers = append(w.managers, fleet.Manager{ID: 9, Execution: fleet.ExecutionIdle, SystemID: "s_old", Status: "offline", ContactedAt: noon})
		},
		"a manager of another fleet with the same entry": func(w *ward) {
			w.shared = true
			w.managers = append(w.managers, fleet.Manager{ID: 9, Execution: fleet.ExecutionIdle, SystemID: "s_z", Status: "online", ContactedAt: noon})
		},
	} {
		w := newWard()
		change(w)
		if report := w.examine(t); len(report.Findings) != 0 {
			t.Errorf("%s: %+v", name, report.Findings)
		}
	}
}

// Nobody can say whose a manager is while a VM has not been seen.
func TestAManagerIsNoStrangerWhileAVMIsUnseen(t *testing.T) {
	w := newWard()
	w.instances = w.instances[1:]
	w.managers = append(w.managers, fleet.Manager{ID: 9, Execution: fleet.ExecutionIdle, SystemID: "s_z", Status: "online", ContactedAt: noon})
	if report := w.examine(t); len(report.Findings) != 1 || report.Findings[0].Code != CodeVMMissing {
		t.Errorf("%+v", report.Findings)
	}
}

func TestEveryFaultOfAHostIsToldAtOnce(t *testing.T) {
	w := newWard()
	f := w.facts["a"]
	f.MainCommand, f.SudoErr, f.Entries[0].TokenExpiresAt = []string{"/bin/sh"}, "systemctl daemon-reload", noon
	var got []string
	for _, f := range w.examine(t).Findings {
		got = append(got, string(f.Code))
	}
	if want := "sudo-command-refused runner-token-expires main-process-not-runner"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// facts/gitlab.md 1.3: a token that sees nothing answers 200 with an empty list.
func TestATokenThatSeesNoManagerIsNotTakenForAnEmptyFleet(t *testing.T) {
	w := newWard()
	w.managers = nil
	report := w.examine(t)
	if len(report.Findings) != 1 || !strings.Contains(report.Findings[0].What, "sees no manager of runner 7") {
		t.Errorf("%+v", report.Findings)
	}
}

func TestOnlyTheNamedVMsAreExamined(t *testing.T) {
	w := newWard()
	w.facts["b"].UnitLoaded = false
	if report := w.examine(t, "a"); len(report.Findings) != 0 || len(report.Examined) != 1 {
		t.Errorf("%+v", report)
	}
	_, err := New(Options{Spec: func(string) (fleet.Spec, error) { return w.spec, nil }, Clock: still{}}).Examine(t.Context(), "gcp", []string{"z"})
	if fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("got %v", err)
	}
}
