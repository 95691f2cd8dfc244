package simhost

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simsystemd"
)

// systemctlArgs is a parsed command line.
type systemctlArgs struct {
	verb       string
	units      []string
	properties []string
	value      bool
	noBlock    bool
	mainOnly   bool
	quiet      bool
	signal     string
	version    bool
}

func parseSystemctl(args []string) systemctlArgs {
	s := systemctlArgs{signal: "SIGTERM"}
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, value, joined := strings.Cut(a, "=")
		next := func() string {
			if joined {
				return value
			}
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch {
		case name == "--property" || name == "-p":
			s.properties = append(s.properties, strings.Split(next(), ",")...)
		case strings.HasPrefix(a, "-p") && len(a) > 2:
			s.properties = append(s.properties, strings.Split(a[2:], ",")...)
		case a == "--value":
			s.value = true
		case a == "--no-block":
			s.noBlock = true
		case a == "-q" || a == "--quiet":
			s.quiet = true
		case a == "--version":
			s.version = true
		case name == "--signal" || name == "-s":
			s.signal = next()
		case name == "--kill-whom" || name == "--kill-who":
			s.mainOnly = next() == "main"
		case name == "--type" || name == "-t" || name == "--state":
			next()
		case strings.HasPrefix(a, "-"):
		case s.verb == "":
			s.verb = a
		default:
			s.units = append(s.units, unitName(a))
		}
	}
	return s
}

func unitName(name string) string {
	if strings.ContainsAny(name, "*?[") || strings.Contains(path.Ext(name), "service") || strings.HasSuffix(name, ".target") || strings.HasSuffix(name, ".timer") {
		return name
	}
	return name + ".service"
}

func systemctl(ctx context.Context, c *call) int {
	s := parseSystemctl(c.args)
	m := c.b.systemd
	if s.version {
		fmt.Fprintln(c.out, "systemd 257 (257.7-1)")
		return 0
	}
	if act, ok := changing[s.verb]; ok {
		if c.user != memfs.Root {
			return c.fail(1, "Failed to %s %s: Interactive authentication required.", s.verb, strings.Join(s.units, " "))
		}
		return act(ctx, c, s)
	}
	switch s.verb {
	case "show":
		return show(c, m, s)
	case "cat":
		for _, u := range s.units {
			text, ok := m.Cat(u)
			if !ok {
				return c.fail(1, "No files found for %s.", u)
			}
			fmt.Fprint(c.out, text)
		}
		return 0
	case "is-active", "is-failed":
		return state(c, m, s)
	case "list-jobs":
		return listJobs(c, m)
	case "list-units", "list-unit-files", "":
		return listUnits(c, m, s)
	case "is-system-running":
		fmt.Fprintln(c.out, "running")
		return 0
	}
	return c.fail(1, "Unknown command verb '%s'.", s.verb)
}

// changing are the verbs for root.
var changing map[string]func(context.Context, *call, systemctlArgs) int

func init() { // they use the table of commands
	changing = map[string]func(context.Context, *call, systemctlArgs) int{
		"daemon-reload": reload, "daemon-reexec": reload, "start": startStop, "stop": startStop, "restart": startStop,
		"kill": killUnit, "mask": mask, "unmask": mask, "reset-failed": mask, "reboot": func(ctx context.Context, c *call, _ systemctlArgs) int {
			return reboot(ctx, c)
		},
	}
}

func reload(ctx context.Context, c *call, _ systemctlArgs) int {
	if !simclock.Sleep(ctx, c.h.o.Clock, c.h.o.ReloadTime) {
		return 1
	}
	c.b.systemd.Reload()
	return 0
}

func startStop(ctx context.Context, c *call, s systemctlArgs) int {
	for _, u := range s.units {
		var tickets []*simsystemd.Ticket
		if s.verb != "start" {
			tickets = append(tickets, c.b.systemd.Stop(u))
		}
		if s.verb == "restart" && tickets[0] != nil {
			<-tickets[0].Done()
		}
		if s.verb != "stop" {
			tickets = append(tickets, c.b.systemd.Start(u))
		}
		for _, t := range tickets {
			if t == nil {
				return c.fail(5, "Failed to %s %s: Unit %s not loaded.", s.verb, u, u)
			}
			if s.noBlock {
				continue
			}
			select {
			case <-t.Done():
				if t.Canceled() {
					return c.fail(1, "Job for %s canceled.", u)
				}
			case <-ctx.Done(): // the client died; the job goes on
				return 143
			}
		}
	}
	return 0
}

func killUnit(_ context.Context, c *call, s systemctlArgs) int {
	sig, ok := simsystemd.ParseSignal(s.signal)
	if !ok {
		return c.fail(1, "Failed to parse signal string %s.", s.signal)
	}
	for _, u := range s.units {
		if !c.b.systemd.Kill(u, sig, s.mainOnly) {
			return c.fail(1, "Failed to kill unit %s: No main process to kill", u)
		}
	}
	return 0
}

// mask --runtime of a unit that lies in /etc is a silent no-op.
func mask(context.Context, *call, systemctlArgs) int { return 0 }

func show(c *call, m *simsystemd.Manager, s systemctlArgs) int {
	if c.h.faults.swallow() {
		return 0
	}
	if len(s.units) == 0 {
		fmt.Fprintln(c.out, "Version=257.7-1")
		return 0
	}
	for i, u := range s.units {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		for _, p := range m.Show(u) {
			switch {
			case len(s.properties) > 0 && !slices.Contains(s.properties, p.Name):
			case s.value:
				fmt.Fprintln(c.out, p.Value)
			default:
				fmt.Fprintf(c.out, "%s=%s\n", p.Name, p.Value)
			}
		}
	}
	return 0
}

func property(m *simsystemd.Manager, unit, name string) string {
	for _, p := range m.Show(unit) {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

func state(c *call, m *simsystemd.Manager, s systemctlArgs) int {
	want, code := strings.TrimPrefix(s.verb, "is-"), 3
	if want == "failed" {
		code = 1
	}
	for _, u := range s.units {
		active := property(m, u, "ActiveState")
		if !s.quiet {
			fmt.Fprintln(c.out, active)
		}
		if active == want {
			code = 0
		}
	}
	return code
}

func listJobs(c *call, m *simsystemd.Manager) int {
	jobs := m.Jobs()
	if len(jobs) == 0 {
		fmt.Fprintln(c.out, "No jobs running.")
	}
	for _, j := range jobs {
		fmt.Fprintln(c.out, j.ID, j.Unit, j.Kind, j.Step)
	}
	return 0
}

func listUnits(c *call, m *simsystemd.Manager, s systemctlArgs) int {
	for _, name := range m.UnitNames() {
		if !matchesAny(name, s.units) {
			continue
		}
		if s.verb == "list-unit-files" {
			fmt.Fprintln(c.out, name, "enabled", "disabled")
			continue
		}
		fmt.Fprintln(c.out, name, property(m, name, "LoadState"), property(m, name, "ActiveState"), property(m, name, "SubState"), name)
	}
	return 0
}

func matchesAny(name string, patterns []string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// reboot begins an orderly shutdown and returns.
func reboot(_ context.Context, c *call) int {
	if c.user != memfs.Root {
		return c.fail(1, "Call to Reboot failed: Interactive authentication required.")
	}
	c.h.wait.Add(1)
	go func() {
		defer c.h.wait.Done()
		c.h.Reboot()
	}()
	return 0
}
