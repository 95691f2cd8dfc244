package simsystemd

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Property is one line of systemctl show.
type Property struct{ Name, Value string }

// Show yields a unit's properties in systemd's order, the known ones.
func (m *Manager) Show(name string) []Property {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.unit(name)
	c := u.config
	loadState, unitFile := "loaded", m.unitFileState(name)
	if c == nil {
		c = &config{}
		loadState, unitFile = "not-found", ""
	}
	out := []Property{
		{"Type", c.get("Type", "simple")},
		{"Restart", c.restart()},
		{"RestartUSec", formatSpan(c.restartDelay())},
		{"TimeoutStopUSec", formatSpan(c.stopLimit(m.o.StopLimit))},
		{"TimeoutStopFailureMode", c.failureMode()},
		{"RuntimeMaxUSec", formatSpan(span(c.get("RuntimeMaxSec", ""), Infinity))},
		{"WatchdogUSec", formatSpan(span(c.get("WatchdogSec", ""), 0))},
		{"MainPID", strconv.Itoa(u.mainPID)},
		{"ControlPID", strconv.Itoa(u.controlPID)},
		{"ExecMainExitTimestampMonotonic", m.sinceBoot(u.exited)},
		{"Result", u.result},
		{"NRestarts", strconv.Itoa(u.restarts)},
	}
	for _, key := range []string{"ExecStart", "ExecStop", "ExecStopPost"} {
		for _, line := range c.values[key] {
			out = append(out, Property{key, execValue(line)})
		}
	}
	if env := c.values["Environment"]; len(env) > 0 {
		out = append(out, Property{"Environment", strings.Join(env, " ")})
	}
	if c.get("User", "") != "" {
		out = append(out, Property{"User", c.user()})
	}
	jobID := ""
	if u.job != nil {
		jobID = strconv.Itoa(u.job.id)
	}
	return append(out,
		Property{"KillMode", c.killMode()},
		Property{"KillSignal", strconv.Itoa(int(c.killSignal()))},
		Property{"Id", name},
		Property{"Names", name},
		Property{"Description", name},
		Property{"LoadState", loadState},
		Property{"ActiveState", u.active},
		Property{"SubState", u.sub},
		Property{"FragmentPath", c.fragment},
		Property{"DropInPaths", strings.Join(c.dropIns, " ")},
		Property{"UnitFileState", unitFile},
		Property{"NeedDaemonReload", yesNo(m.stale(u))},
		Property{"Job", jobID},
	)
}

// sinceBoot renders a moment as CLOCK_MONOTONIC has it, in microseconds.
func (m *Manager) sinceBoot(at time.Time) string {
	if at.IsZero() {
		return "0"
	}
	return strconv.FormatInt(at.Sub(m.booted).Microseconds(), 10)
}

// unitFileState is whether a target wants the unit. One without [Install] can
// not be enabled.
func (m *Manager) unitFileState(name string) string {
	for _, dir := range unitDirs {
		targets, _ := m.o.Files.ReadDir(dir, "root") // a missing directory wants nothing
		for _, t := range targets {
			if !strings.HasSuffix(t.Name(), ".wants") {
				continue
			}
			wanted, _ := m.o.Files.ReadDir(path.Join(dir, t.Name()), "root")
			if slices.ContainsFunc(wanted, func(e fs.DirEntry) bool { return e.Name() == name }) {
				return "enabled"
			}
		}
	}
	for _, dir := range unitDirs {
		if text, err := m.o.Files.ReadFile(path.Join(dir, name), "root"); err == nil {
			if strings.Contains(string(text), "[Install]") {
				return "disabled"
			}
			return "static"
		}
	}
	return ""
}

// stale says whether the files differ from what is loaded. Lock held.
func (m *Manager) stale(u *unit) bool {
	if u.config == nil {
		return false
	}
	now := load(m.o.Files, u.name)
	return now != nil && now.raw != u.config.raw
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func execValue(line string) string {
	words := argv(line)
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("{ path=%s ; argv[]=%s ; ignore_errors=%s ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }",
		words[0], strings.Join(words, " "), yesNo(strings.HasPrefix(line, "-")))
}

// Job is one line of systemctl list-jobs.
type Job struct {
	ID               int
	Unit, Kind, Step string // Step: running or waiting
}

// Jobs lists what is queued or running.
func (m *Manager) Jobs() []Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Job
	for _, u := range m.units {
		if u.job == nil {
			continue
		}
		step := "running"
		if u.job.waiting {
			step = "waiting"
		}
		out = append(out, Job{ID: u.job.id, Unit: u.name, Kind: u.job.kind, Step: step})
	}
	slices.SortFunc(out, func(a, b Job) int { return a.ID - b.ID })
	return out
}

// UnitNames lists every service that is loaded or lies on disk, by name.
func (m *Manager) UnitNames() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := map[string]bool{}
	for name := range m.units {
		names[name] = true
	}
	for _, dir := range unitDirs {
		entries, _ := m.o.Files.ReadDir(dir, "root") // a missing directory has no units
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".service") && !e.IsDir() {
				names[e.Name()] = true
			}
		}
	}
	out := make([]string, 0, len(names))
	for name := range names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Cat yields fragment and drop-ins as systemctl cat prints them, from disk.
func (m *Manager) Cat(name string) (string, bool) {
	c := load(m.o.Files, name)
	if c == nil {
		return "", false
	}
	var b strings.Builder
	for i, p := range append([]string{c.fragment}, c.dropIns...) {
		text, err := m.o.Files.ReadFile(p, "root")
		if err != nil {
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# %s\n%s", path.Clean(p), text)
	}
	return b.String(), true
}
