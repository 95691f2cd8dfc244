package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const (
	// dropIn is the drain's own, in /run: what sorts behind it wins over it, and
	// what has its name in /etc hides it.
	dropIn = "zz-sluice-drain.conf"
	// clockSlack is what a clock may be off before it is worth a word.
	clockSlack = time.Minute
	// systemdWanted knows every setting of the drain's drop-in (systemd's NEWS
	// for 246).
	systemdWanted = 246
)

// weaknesses finds what makes a host less safe, though it is not refused.
func (e *examination) weaknesses(vm string, f *fleet.HostFacts) {
	e.killMode(vm, f)
	e.overrides(vm, f)
	e.entries(vm, f)
	if off := f.ClockOff.Abs(); off > clockSlack {
		direction := "ahead"
		if f.ClockOff < 0 {
			direction = "behind"
		}
		e.found(CodeClockOff, vm, fmt.Sprintf("the host's clock is %s %s", off.Round(time.Second), direction))
	}
	if v := systemdVersion(f.Systemd); v > 0 && v < systemdWanted {
		e.found(CodeSystemdOld, vm, fmt.Sprintf("systemd %d is older than %d", v, systemdWanted))
	}
	if e.spec.Host.RunnerUser == "root" && f.UnitUser != "" && f.UnitUser != "root" && !uses(f, "docker") {
		e.found(CodePodmanAsRoot, vm, "host.runner_user is root, but the runner runs as "+f.UnitUser)
	}
}

// systemdVersion reads the version line of systemctl, as "systemd 257 (257.7-1)";
// 0 = it cannot be told.
func systemdVersion(line string) int {
	var v int
	if _, err := fmt.Sscanf(line, "systemd %d", &v); err != nil {
		return 0
	}
	return v
}

// killMode finds a unit whose stop signals the job's own processes
// (facts/runner-host.md). A drain of ours sets mixed; a stop by others does not.
func (e *examination) killMode(vm string, f *fleet.HostFacts) {
	if f.KillMode != "control-group" || !uses(f, "shell") {
		return
	}
	what := "KillMode=control-group with a shell executor"
	if files := setters(f, func(o fleet.Override) bool { return o.Key == "KillMode" }); len(files) > 0 {
		what += ", set by " + strings.Join(files, ", ")
	}
	e.found(CodeKillMode, vm, what)
}

// overrides finds drop-ins that would win over the drain's.
func (e *examination) overrides(vm string, f *fleet.HostFacts) {
	if files := setters(f, func(o fleet.Override) bool { return path.Base(o.File) >= dropIn }); len(files) > 0 {
		e.found(CodeOverrideLate, vm, strings.Join(files, ", ")+" would win over "+dropIn)
	}
}

// setters lists the files of the overrides that match, each once.
func setters(f *fleet.HostFacts, match func(fleet.Override) bool) []string {
	var files []string
	for _, o := range f.Overrides {
		if match(o) && !slices.Contains(files, o.File) {
			files = append(files, o.File)
		}
	}
	return files
}

// entries finds a config.toml that serves several runner entries of GitLab.
func (e *examination) entries(vm string, f *fleet.HostFacts) {
	var names []string
	tokens := map[string]bool{}
	for _, entry := range f.Entries {
		if entry.TokenSHA256 != "" && !tokens[entry.TokenSHA256] {
			tokens[entry.TokenSHA256] = true
			names = append(names, fmt.Sprintf("%q (id %d)", entry.Name, entry.ID))
		}
	}
	if len(names) > 1 {
		e.found(CodeEntriesMixed, vm, fmt.Sprintf("config.toml serves %d runner entries: %s", len(names), strings.Join(names, ", ")))
	}
}

// uses says whether a [[runners]] entry has this kind of executor.
func uses(f *fleet.HostFacts, executor string) bool {
	return slices.ContainsFunc(f.Entries, func(entry fleet.RunnerEntry) bool { return strings.HasPrefix(entry.Executor, executor) })
}
