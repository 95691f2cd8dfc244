package simsystemd

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Infinity is a time limit that never passes.
const Infinity = time.Duration(1<<63 - 1)

// config is a unit as loaded: its fragment and its drop-ins, merged.
type config struct {
	fragment string
	dropIns  []string
	values   map[string][]string // [Service] keys; a list has several values
	raw      string              // everything read, to see whether a reload is due
}

// unitDirs are where fragments and drop-ins lie, the strongest first.
var unitDirs = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"}

// Files is what systemd reads: the host's file system.
type Files interface {
	ReadFile(name, user string) ([]byte, error)
	ReadDir(name, user string) ([]fs.DirEntry, error)
}

// load reads a unit from disk; nil if there is none.
func load(files Files, unit string) *config {
	c := &config{values: map[string][]string{}}
	for _, dir := range unitDirs {
		text, err := files.ReadFile(path.Join(dir, unit), "root")
		if err == nil {
			c.fragment = path.Join(dir, unit)
			c.apply(string(text))
			break
		}
	}
	if c.fragment == "" {
		return nil
	}
	for _, p := range dropIns(files, unit) {
		text, err := files.ReadFile(p, "root")
		if err != nil {
			continue // vanished between list and read
		}
		c.dropIns = append(c.dropIns, p)
		c.apply(string(text))
	}
	return c
}

// dropIns lists a unit's drop-ins in the order in which they apply: by file
// name over all directories; of one name only the strongest counts. Those of
// service.d are for every service, and weaker than the unit's own.
func dropIns(files Files, unit string) []string {
	chosen := map[string]string{}
	for _, sub := range []string{unit + ".d", "service.d"} {
		for _, dir := range unitDirs {
			entries, err := files.ReadDir(path.Join(dir, sub), "root")
			if err != nil {
				continue
			}
			for _, e := range entries {
				if _, taken := chosen[e.Name()]; !taken && strings.HasSuffix(e.Name(), ".conf") {
					chosen[e.Name()] = path.Join(dir, sub, e.Name())
				}
			}
		}
	}
	out := make([]string, 0, len(chosen))
	for _, p := range chosen {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	return out
}

// apply merges one file's [Service] section. An empty value empties the key.
func (c *config) apply(text string) {
	c.raw += text + "\x00"
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[':
			section = line
			continue
		case section != "[Service]":
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case value == "":
			delete(c.values, key)
		case strings.HasPrefix(key, "Exec") || strings.HasPrefix(key, "Environment"):
			c.values[key] = append(c.values[key], value)
		default:
			c.values[key] = []string{value}
		}
	}
}

func (c *config) get(key, def string) string {
	if v := c.values[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return def
}

func (c *config) user() string        { return c.get("User", "root") }
func (c *config) restart() string     { return c.get("Restart", "no") }
func (c *config) killMode() string    { return c.get("KillMode", "control-group") }
func (c *config) failureMode() string { return c.get("TimeoutStopFailureMode", "terminate") }

func (c *config) restartDelay() time.Duration {
	return span(c.get("RestartSec", ""), 100*time.Millisecond)
}

func (c *config) killSignal() syscall.Signal {
	sig, ok := ParseSignal(c.get("KillSignal", "SIGTERM"))
	if !ok {
		return syscall.SIGTERM
	}
	return sig
}

// stopLimit is TimeoutStopSec; def is the manager's default.
func (c *config) stopLimit(def time.Duration) time.Duration {
	return span(c.get("TimeoutStopSec", ""), def)
}

// argv splits a command line at blanks outside of quotes; a leading "-", "@" or
// "+" is dropped.
func argv(line string) []string {
	var words []string
	word, open, inside := "", rune(0), false
	for _, r := range strings.TrimLeft(line, "-@+!:") + " " {
		switch {
		case open == 0 && (r == '"' || r == '\''):
			open, inside = r, true
		case r == open && open != 0:
			open = 0
		case open == 0 && (r == ' ' || r == '\t'):
			if inside || word != "" {
				words = append(words, word)
			}
			word, inside = "", false
		default:
			word += string(r)
		}
	}
	return words
}

// span reads systemd's time spans: "45s", "1min 30s", "infinity", "120".
func span(text string, def time.Duration) time.Duration {
	if text == "infinity" {
		return Infinity
	}
	total, found := time.Duration(0), false
	for _, field := range strings.Fields(text) {
		digits := strings.TrimRight(field, "abcdefghijklmnopqrstuvwxyz")
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return def
		}
		unit, ok := spanUnits[field[len(digits):]]
		if !ok {
			return def
		}
		total, found = total+time.Duration(n*float64(unit)), true
	}
	if !found {
		return def
	}
	return total
}

var spanUnits = map[string]time.Duration{
	"": time.Second, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "sec": time.Second,
	"m": time.Minute, "min": time.Minute, "h": time.Hour, "hr": time.Hour, "d": 24 * time.Hour,
}

// formatSpan prints a time span as systemctl show does.
func formatSpan(d time.Duration) string {
	if d == Infinity {
		return "infinity"
	}
	if d == 0 {
		return "0"
	}
	var parts []string
	for _, u := range []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}} {
		if n := d / u.size; n > 0 {
			parts = append(parts, strconv.FormatInt(int64(n), 10)+u.name)
			d -= n * u.size
		}
	}
	return strings.Join(parts, " ")
}

var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "ABRT": syscall.SIGABRT,
	"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

// ParseSignal reads "SIGQUIT", "QUIT" or "3".
func ParseSignal(text string) (syscall.Signal, bool) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < 65 {
		return syscall.Signal(n), true
	}
	sig, ok := signals[strings.TrimPrefix(strings.ToUpper(text), "SIG")]
	return sig, ok
}
