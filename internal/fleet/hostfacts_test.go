package fleet

import (
	"testing"
	"time"
)

var testSettings = HostSettings{User: "fedora", RunnerUser: "ci", Unit: "gitlab-runner.service"}

func goodHost() *HostFacts {
	return &HostFacts{
		Reading:     HostReading{Unit: UnitState{ActiveState: "active", MainPID: 812}},
		UnitLoaded:  true,
		RunnerPIDs:  []int{812},
		RunnerUnits: []string{"gitlab-runner.service"},
		MainCommand: []string{"/usr/bin/gitlab-runner", "run", "--config", "/etc/gitlab-runner/config.toml"},
		SystemIDs:   []string{"s_0123456789ab"},
		ConfigKnown: true,
		Entries:     []RunnerEntry{{Name: "shared"}},
	}
}

func TestHealthyHostIsNotRefused(t *testing.T) {
	for name, change := range map[string]func(*HostFacts){
		"serving":      func(*HostFacts) {},
		"its old name": func(f *HostFacts) { f.MainCommand[0] = "gitlab-ci-multi-runner" },
		"stopped": func(f *HostFacts) {
			f.Reading.Unit, f.RunnerPIDs, f.RunnerUnits, f.MainCommand = UnitState{ActiveState: "inactive"}, nil, nil, nil
		},
		"never joined": func(f *HostFacts) {
			f.Reading.Unit, f.RunnerPIDs, f.RunnerUnits, f.MainCommand = UnitState{ActiveState: "inactive"}, nil, nil, nil
			f.SystemIDs, f.ConfigKnown, f.Entries = nil, false, nil
		},
	} {
		f := goodHost()
		change(f)
		if err := RefuseHost(testExpected.Ref, testSettings, f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Cases T51, T52, T53 and the bad input of a host: each is refused before
// anything is stopped, with the VM, the reason and the way out.
func TestHostIsRefusedWithReasonAndRemedy(t *testing.T) {
	expiry := time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(*HostFacts)
		code   Code
		want   string
	}{
		"systemd silent": {
			func(f *HostFacts) { f.SystemdError = "Failed to connect to bus" }, CodeUnavailable,
			"shared/runner-01: systemd does not answer: Failed to connect to bus",
		},
		"unit missing": {
			func(f *HostFacts) { f.UnitLoaded = false }, CodeInvalid,
			"shared/runner-01: there is no unit gitlab-runner.service on the host (set host.unit of the fleet to the runner's unit; `systemctl list-units 'gitlab-runner*'` on the host lists candidates)",
		},
		"shell wrapper": {
			func(f *HostFacts) { f.MainCommand = []string{"/bin/sh", "-c", "gitlab-runner run"} }, CodeInvalid,
			`shared/runner-01: the main process of gitlab-runner.service is "/bin/sh -c gitlab-runner run", not gitlab-runner run: a wrapper swallows SIGQUIT and the job would be cut (start gitlab-runner directly in ExecStart= (or with exec in the wrapper))`,
		},
		"not run": {
			func(f *HostFacts) { f.MainCommand = []string{"/usr/bin/gitlab-runner", "verify"} }, CodeInvalid,
			`shared/runner-01: the main process of gitlab-runner.service is "/usr/bin/gitlab-runner verify", not gitlab-runner run: a wrapper swallows SIGQUIT and the job would be cut (start gitlab-runner directly in ExecStart= (or with exec in the wrapper))`,
		},
		"bare name": {
			func(f *HostFacts) { f.MainCommand = []string{"gitlab-runner"} }, CodeInvalid,
			`shared/runner-01: the main process of gitlab-runner.service is "gitlab-runner", not gitlab-runner run: a wrapper swallows SIGQUIT and the job would be cut (start gitlab-runner directly in ExecStart= (or with exec in the wrapper))`,
		},
		"two processes": {
			func(f *HostFacts) { f.RunnerPIDs = []int{812, 999} }, CodeInvalid,
			"shared/runner-01: 2 gitlab-runner processes run on the host (pids 812 999): stopping one unit does not stop intake (leave one runner unit per VM)",
		},
		"two units": {
			func(f *HostFacts) { f.RunnerUnits = append(f.RunnerUnits, "runner2.service") }, CodeInvalid,
			"shared/runner-01: more than one runner unit on the host: gitlab-runner.service, runner2.service (leave one runner unit per VM)",
		},
		"outside the unit": {
			func(f *HostFacts) { f.RunnerPIDs = []int{999} }, CodeInvalid,
			"shared/runner-01: gitlab-runner runs as pid 999, outside of gitlab-runner.service (main pid 812) (set host.unit to the unit that runs it)",
		},
		"under no unit": {
			func(f *HostFacts) { f.Reading.Unit.MainPID, f.MainCommand = 0, nil }, CodeInvalid,
			"shared/runner-01: gitlab-runner runs as pid 812, but not under gitlab-runner.service (set host.unit to the unit that runs it)",
		},
		"sudo": {
			func(f *HostFacts) { f.SudoErr = "systemctl daemon-reload" }, CodeForbidden,
			"shared/runner-01: sudo refuses systemctl daemon-reload to fedora (install deploy/sudoers/sluice on the host (visudo -cf checks it))",
		},
		"two system_ids": {
			func(f *HostFacts) { f.SystemIDs = []string{"s_a", "s_b"} }, CodeConflict,
			"shared/runner-01: the host has 2 system_ids: s_a, s_b (leave one .runner_system_id, the one beside the config.toml in use)",
		},
		"no system_id": {
			func(f *HostFacts) { f.SystemIDs = nil }, CodeInvalid,
			"shared/runner-01: gitlab-runner runs, but its .runner_system_id cannot be read (set host.config to the config.toml that the unit uses; deploy/sudoers/sluice allows the read)",
		},
		"no config": {
			func(f *HostFacts) { f.ConfigKnown = false }, CodeInvalid,
			"shared/runner-01: gitlab-runner runs, but its config.toml cannot be read (set host.config to the config.toml that the unit uses; deploy/sudoers/sluice allows the read)",
		},
		"unregister": {
			func(f *HostFacts) { f.Unregisters = []string{"cleanup.service: unregister.sh"} }, CodeInvalid,
			"shared/runner-01: the host unregisters its runner at shutdown (cleanup.service: unregister.sh): with a shared token that can end the whole fleet (disable it on the host, and in the image; Sluice removes only the VM's own manager)",
		},
		"token expiry": {
			func(f *HostFacts) { f.Entries[0].TokenExpiresAt = expiry }, CodeInvalid,
			`shared/runner-01: the runner's token expires (2026-12-24T00:00:00Z, entry "shared"): its automatic rotation would invalidate every other VM of the fleet (remove the expiry of the runner entry in GitLab, write the token anew to config.toml without token_expires_at, or set FF_DISABLE_AUTOMATIC_TOKEN_ROTATION on every VM)`,
		},
		"podman": {
			func(f *HostFacts) { f.PodmanErr = "podman: not found" }, CodeInvalid,
			"shared/runner-01: the containers of ci cannot be listed: podman: not found (set host.runner_user to the user that runs the jobs, and see that podman is installed; root's list is empty and would look idle)",
		},
	} {
		f := goodHost()
		test.change(f)
		err := RefuseHost(testExpected.Ref, testSettings, f)
		if CodeOf(err) != test.code || err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got  %v\n want %s: %s", name, err, test.code, test.want)
		}
	}
}
