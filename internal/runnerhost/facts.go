package runnerhost

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Inspect reads everything that preflight and doctor ask.
func (h *Hosts) Inspect(ctx context.Context, t engine.Target) (*fleet.HostFacts, error) {
	takenAt := h.o.Clock.Now()
	r, err := h.ask(ctx, t, scriptInspect)
	if err != nil {
		return nil, err
	}
	if r.broken != nil {
		return nil, r.broken
	}
	facts := readFacts(r.answer)
	facts.ClockOff = clockOff(r.answer, takenAt, h.o.Clock.Now())
	facts.SudoNone = len(r.answer["sudo.refused"]) == asked(h.o.Settings)
	facts.Reading = readReading(t, takenAt, r.answer)
	if !facts.Reading.ContainersKnown {
		facts.PodmanErr = podmanErr(r.answer)
	}
	facts.Entries, err = readEntries(r.answer)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "%s: %s: %w", t.Ref, h.o.Settings.ConfigPath, err)
	}
	return &facts, nil
}

func readFacts(a answer) fleet.HostFacts {
	signal, _ := a.number("unit.KillSignal")
	return fleet.HostFacts{
		UnitLoaded:   a.one("unit.LoadState") == "loaded",
		UnitPath:     a.one("unit.FragmentPath"),
		ExecStart:    strings.Join(commandLines(a["unit.ExecStart"]), "; "),
		ExecStop:     append(commandLines(a["unit.ExecStop"]), commandLines(a["unit.ExecStopPost"])...),
		UnitUser:     a.one("unit.User"),
		KillSignal:   int(signal),
		KillMode:     a.one("unit.KillMode"),
		Overrides:    overrides(a["override"]),
		StopTimeout:  a.one("unit.TimeoutStopUSec"),
		Environment:  a["environment"],
		Ended:        ended(a),
		RunnerPIDs:   numbers(a["runner.pid"]),
		RunnerUnits:  distinct(a["runner.unit"]),
		MainCommand:  a["main.argument"],
		Unregisters:  distinct(a["unregisters"]),
		SystemIDs:    a["system_id.found"],
		OwnSystemIDs: ownSystemIDs(a["machine_id"]),
		ConfigKnown:  a.yes("config.known"),
		SudoErr:      strings.Join(a["sudo.refused"], ", "),
		SystemdError: systemdError(a),
		HasPidwait:   a.yes("pidwait"),
		Systemd:      a.one("systemd.version"),
		Podman:       a.one("podman.version"),
	}
}

// ended is how long ago the unit's last main process ended, by the host's own
// clock: systemd counts microseconds since the boot (systemd.directives(7),
// org.freedesktop.systemd1(5)), 0 where there was none. The uptime has the time
// that a machine was suspended, too; of one that was, the answer is too long.
func ended(a answer) time.Duration {
	at, ok := a.number("unit.ExecMainExitTimestampMonotonic")
	up, err := strconv.ParseFloat(a.one("uptime"), 64)
	if !ok || at <= 0 || err != nil {
		return 0
	}
	ago := time.Duration(up*float64(time.Second)) - time.Duration(at)*time.Microsecond
	return max(ago, time.Nanosecond)
}

// clockOff is how far the host's clock, read at some time between asked and
// answered, is ahead of ours at the least; it tells whole seconds only.
func clockOff(a answer, asked, answered time.Time) time.Duration {
	seconds, ok := a.number("clock")
	if !ok {
		return 0
	}
	at := time.Unix(seconds, 0)
	switch {
	case at.After(answered):
		return at.Sub(answered)
	case at.Add(time.Second).Before(asked):
		return at.Add(time.Second).Sub(asked)
	}
	return 0
}

// overrides reads lines of a key, a space and the file that sets it.
func overrides(lines []string) []fleet.Override {
	var list []fleet.Override
	for _, line := range lines {
		if key, file, ok := strings.Cut(line, " "); ok {
			list = append(list, fleet.Override{File: file, Key: key})
		}
	}
	return list
}

// ownSystemIDs is what gitlab-runner makes of each machine-id when it finds no
// .runner_system_id (its common/system_id_state.go). The machine-id itself goes
// no further: machine-id(5) calls it confidential.
func ownSystemIDs(machineIDs []string) []string {
	var list []string
	for _, id := range machineIDs {
		if id == "" {
			continue
		}
		mac := hmac.New(sha256.New, []byte(id))
		mac.Write([]byte("gitlab-runner"))
		list = append(list, "s_"+hex.EncodeToString(mac.Sum(nil))[:12])
	}
	return list
}

func systemdError(a answer) string {
	if said := a.one("systemd.error"); said != "" {
		return said
	}
	if a.one("unit.LoadState") == "" {
		return "systemctl show gives no answer"
	}
	return ""
}

func podmanErr(a answer) string {
	var r fleet.HostReading
	return readContainers(&r, a)
}

// commandLines reads systemd's rendering of a command:
// { path=/bin/x ; argv[]=/bin/x y ; ignore_errors=no ; … }.
func commandLines(values []string) []string {
	var list []string
	for _, value := range values {
		_, rest, ok := strings.Cut(value, "argv[]=")
		if !ok {
			continue
		}
		argv, _, _ := strings.Cut(rest, " ; ")
		list = append(list, strings.TrimSpace(argv))
	}
	return list
}

// readEntries reads the [[runners]] sections: entry.1.begin, entry.1.name, …
// An expiry that cannot be read is an error: it must not pass for none.
func readEntries(a answer) ([]fleet.RunnerEntry, error) {
	var list []fleet.RunnerEntry
	for n := 1; a.one(fmt.Sprintf("entry.%d.begin", n)) != ""; n++ {
		value := func(key string) string { return a.one(fmt.Sprintf("entry.%d.%s", n, key)) }
		id, _ := strconv.ParseInt(value("id"), 10, 64)
		expires, err := readExpiry(value("token_expires_at"))
		if err != nil {
			return nil, fmt.Errorf("token_expires_at of entry %d: %w", n, err)
		}
		list = append(list, fleet.RunnerEntry{
			Name: value("name"), URL: value("url"), ID: id, Executor: value("executor"),
			TokenPrefix: value("token_prefix"), TokenSHA256: value("token_sha256"), TokenExpiresAt: expires,
		})
	}
	return list, nil
}

// readExpiry reads a TOML date; gitlab-runner writes year 1 for "never".
func readExpiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, err
	}
	if at.Year() <= 1 {
		return time.Time{}, nil
	}
	return at, nil
}

func numbers(values []string) []int {
	var list []int
	for _, value := range values {
		if n, err := strconv.Atoi(value); err == nil {
			list = append(list, n)
		}
	}
	return list
}

func distinct(values []string) []string {
	var list []string
	seen := map[string]bool{}
	for _, value := range values {
		if !seen[value] {
			list = append(list, value)
		}
		seen[value] = true
	}
	return list
}
