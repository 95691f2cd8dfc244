package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// HostFacts is what preflight and doctor learn of a host before anything is
// touched. Empty lists with the matching *Known false mean: not readable.
type HostFacts struct {
	Reading HostReading

	UnitLoaded   bool     // systemd knows the unit
	UnitPath     string   // FragmentPath
	ExecStart    string   // argv of the unit's ExecStart
	ExecStop     []string // ExecStop= and ExecStopPost= commands of the unit
	UnitUser     string   // User= of the unit; "" = root
	KillSignal   int
	KillMode     string
	StopTimeout  string        // TimeoutStopUSec as systemd prints it
	Overrides    []Override    // what the unit's other drop-ins set of what a drain sets
	Environment  []string      // names only
	Ended        time.Duration // how long ago the unit's last main process of this boot ended; 0 = none has
	RunnerPIDs   []int         // processes on the host that are `gitlab-runner run`
	RunnerUnits  []string      // units whose main process is gitlab-runner run
	MainCommand  []string      // argv of the unit's main process; empty if none
	Unregisters  []string      // units and commands that would unregister at stop
	SystemIDs    []string      // contents of the .runner_system_id files found
	OwnSystemIDs []string      // what gitlab-runner would call itself on this machine; none = not known
	ConfigKnown  bool          // config.toml was readable
	Entries      []RunnerEntry
	PodmanErr    string        // why the runner user's containers cannot be listed; "" = they can
	SudoErr      string        // the needed sudo commands that are refused; "" = none is
	SudoNone     bool          // all of them are
	ClockOff     time.Duration // how far the host's clock is ahead of ours, at the least; 0 = not seen to be
	SystemdError string        // systemctl did not answer
	HasPidwait   bool
	Systemd      string // version line
	Podman       string // version line
}

// stillListed is for how long a GitLab that does not list the manager of a runner
// that has ended may answer from before that runner had joined.
const stillListed = 15 * time.Minute

// EndedLately says whether a runner ended so short a time ago that a GitLab which
// does not list its manager says nothing: a stale answer. One that ended with an
// error of its own, as where its configuration is wrong, counts as none.
func (f *HostFacts) EndedLately() bool {
	return f.Ended > 0 && f.Ended < stillListed && f.Reading.Unit.Result != "exit-code"
}

// RunnerEntry is one [[runners]] section of config.toml, without its token.
type RunnerEntry struct {
	Name           string
	URL            string
	ID             int64
	Executor       string
	TokenPrefix    string    // "glrt-" and the like; never more
	TokenSHA256    string    // hex, to compare with the fleet's; "" = not read
	TokenExpiresAt time.Time // zero = never
}

// Override is one value that a drop-in of the runner's unit sets.
type Override struct {
	File string
	Key  string // as written: KillMode, TimeoutStopSec, …
}

// RefuseHost says why a host must not be drained, before anything is stopped
// (design.md sections 4.1 and 5): the first of its refusals. Nil = nothing is
// against it.
func RefuseHost(vm Ref, settings HostSettings, f *HostFacts) error {
	if all := Refusals(vm, settings, f); len(all) > 0 {
		return all[0].Err
	}
	return nil
}

// Refusals are all that is against draining a host, what matters most first;
// of faults that come from each other only the cause. The subject names the VM
// in the messages. Errors: CodeUnavailable, CodeInvalid, CodeForbidden,
// CodeConflict, each with what to do next.
func Refusals(vm Ref, settings HostSettings, f *HostFacts) []Refusal {
	var list []Refusal
	for _, check := range []func(Ref, HostSettings, *HostFacts) *Refusal{
		refuseUnit, refuseSudo, refuseConfig, refuseIdentity, refuseUnregister, refuseExpiry, refusePodman,
	} {
		if r := check(vm, settings, f); r != nil {
			list = append(list, *r)
		}
	}
	return list
}

func refuseUnit(vm Ref, s HostSettings, f *HostFacts) *Refusal {
	switch {
	case f.SystemdError != "":
		return refuse(FaultSystemdSilent, Errorf(CodeUnavailable, "%s: systemd does not answer: %s", vm, f.SystemdError))
	case !f.UnitLoaded:
		return refuse(FaultUnitMissing, Errorf(CodeInvalid, "%s: there is no unit %s on the host", vm, s.Unit).
			WithHint("set host.unit of the fleet to the runner's unit; `systemctl list-units 'gitlab-runner*'` on the host lists candidates"))
	case len(f.MainCommand) > 0 && !isRunner(f.MainCommand):
		return refuse(FaultMainProcess, Errorf(CodeInvalid, "%s: the main process of %s is %q, not gitlab-runner run: a wrapper swallows SIGQUIT and the job would be cut",
			vm, s.Unit, strings.Join(f.MainCommand, " ")).
			WithHint("start gitlab-runner directly in ExecStart= (or with exec in the wrapper)"))
	case len(f.RunnerPIDs) > 1:
		return refuse(FaultTwoRunners, Errorf(CodeInvalid, "%s: %d gitlab-runner processes run on the host (pids %s): stopping one unit does not stop intake",
			vm, len(f.RunnerPIDs), ints(f.RunnerPIDs)).WithHint("leave one runner unit per VM"))
	case len(f.RunnerUnits) > 1:
		return refuse(FaultTwoRunners, Errorf(CodeInvalid, "%s: more than one runner unit on the host: %s", vm, strings.Join(f.RunnerUnits, ", ")).
			WithHint("leave one runner unit per VM"))
	case len(f.RunnerPIDs) == 1 && f.Reading.Unit.MainPID != 0 && f.RunnerPIDs[0] != f.Reading.Unit.MainPID:
		return refuse(FaultRunnerOutside, Errorf(CodeInvalid, "%s: gitlab-runner runs as pid %d, outside of %s (main pid %d)",
			vm, f.RunnerPIDs[0], s.Unit, f.Reading.Unit.MainPID).WithHint("set host.unit to the unit that runs it"))
	case len(f.RunnerPIDs) == 1 && f.Reading.Unit.MainPID == 0:
		return refuse(FaultRunnerOutside, Errorf(CodeInvalid, "%s: gitlab-runner runs as pid %d, but not under %s", vm, f.RunnerPIDs[0], s.Unit).
			WithHint("set host.unit to the unit that runs it"))
	}
	return nil
}

func isRunner(argv []string) bool {
	if len(argv) < 2 {
		return false
	}
	base := argv[0][strings.LastIndexByte(argv[0], '/')+1:]
	if base != "gitlab-runner" && base != "gitlab-ci-multi-runner" {
		return false
	}
	return slices.Contains(argv[1:], "run")
}

func refuseSudo(vm Ref, s HostSettings, f *HostFacts) *Refusal {
	fault := FaultSudoRefused
	switch {
	case f.SudoErr == "":
		return nil
	case f.SudoNone:
		fault = FaultSudoNone
	}
	return refuse(fault, Errorf(CodeForbidden, "%s: sudo refuses %s to %s", vm, f.SudoErr, s.User).
		WithHint("install deploy/sudoers/sluice on the host (visudo -cf checks it)"))
}

func refuseIdentity(vm Ref, _ HostSettings, f *HostFacts) *Refusal {
	switch {
	case len(f.SystemIDs) > 1:
		return refuse(FaultTwoSystemIDs, Errorf(CodeConflict, "%s: the host has %d system_ids: %s", vm, len(f.SystemIDs), strings.Join(f.SystemIDs, ", ")).
			WithHint("leave one .runner_system_id, the one beside the config.toml in use"))
	case f.SudoNone: // what cannot be read for want of it is no fault of its own
		return nil
	case len(f.SystemIDs) == 0 && (f.Reading.Unit.MainPID != 0 || len(f.RunnerPIDs) > 0):
		return refuse(FaultIdentityUnread, Errorf(CodeInvalid, "%s: gitlab-runner runs, but its .runner_system_id cannot be read", vm).
			WithHint("set host.config to the config.toml that the unit uses; deploy/sudoers/sluice allows the read"))
	case !f.ConfigKnown && f.Reading.Unit.MainPID != 0:
		return refuse(FaultIdentityUnread, Errorf(CodeInvalid, "%s: gitlab-runner runs, but its config.toml cannot be read", vm).
			WithHint("set host.config to the config.toml that the unit uses; deploy/sudoers/sluice allows the read"))
	}
	return nil
}

// RefuseUnregister is the one refusal that holds for a VM whose drain is
// skipped, too: its shutdown would unregister the token of the whole fleet
// (design.md section 3, promise 2). Errors: CodeInvalid.
func RefuseUnregister(vm Ref, settings HostSettings, f *HostFacts) error {
	if refusal := refuseUnregister(vm, settings, f); refusal != nil {
		return refusal.Err
	}
	return nil
}

func refuseUnregister(vm Ref, _ HostSettings, f *HostFacts) *Refusal {
	// ExecStop= of the runner's own unit is cleared by the drop-in; only what
	// the drop-in cannot clear, or what other units run, is refused.
	if len(f.Unregisters) == 0 {
		return nil
	}
	return refuse(FaultUnregisters, Errorf(CodeInvalid, "%s: the host unregisters its runner at shutdown (%s): with a shared token that can end the whole fleet",
		vm, strings.Join(f.Unregisters, "; ")).
		WithHint("disable it on the host, and in the image; Sluice removes only the VM's own manager"))
}

func refuseExpiry(vm Ref, _ HostSettings, f *HostFacts) *Refusal {
	for _, e := range f.Entries {
		if !e.TokenExpiresAt.IsZero() {
			return refuse(FaultTokenExpires, Errorf(CodeInvalid, "%s: the runner's token expires (%s, entry %q): its automatic rotation would invalidate every other VM of the fleet",
				vm, e.TokenExpiresAt.UTC().Format(time.RFC3339), e.Name).
				WithHint("remove the expiry of the runner entry in GitLab, write the token anew to config.toml without token_expires_at, or set FF_DISABLE_AUTOMATIC_TOKEN_ROTATION on every VM"))
		}
	}
	return nil
}

func refusePodman(vm Ref, s HostSettings, f *HostFacts) *Refusal {
	if f.PodmanErr == "" || f.SudoNone && s.User != s.RunnerUser {
		return nil
	}
	return refuse(FaultContainersUnread, Errorf(CodeInvalid, "%s: the containers of %s cannot be listed: %s", vm, s.RunnerUser, f.PodmanErr).
		WithHint("set host.runner_user to the user that runs the jobs, and see that podman is installed; root's list is empty and would look idle"))
}

func ints(list []int) string {
	return strings.Trim(fmt.Sprint(list), "[]")
}
