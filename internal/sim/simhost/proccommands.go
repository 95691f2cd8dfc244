package simhost

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
	"gitlab.com/sluice-runners/sluice/internal/sim/simsystemd"
)

// ps prints pid, user, name and command line of every process; -o pid=,args=
// and the like choose; -p PID restricts.
func ps(_ context.Context, c *call) int {
	columns, only := []string{"pid", "user", "args"}, ""
	for i, a := range c.args {
		switch {
		case a == "-o" && i+1 < len(c.args):
			columns = strings.Split(c.args[i+1], ",")
		case a == "-p" && i+1 < len(c.args):
			only = c.args[i+1]
		}
	}
	found := false
	for _, p := range c.h.pids(c.b, func(p *process) bool { return only == "" || only == strconv.Itoa(p.pid) }) {
		found = true
		values := map[string]string{
			"pid": strconv.Itoa(p.pid), "user": p.user, "comm": p.comm(), "args": strings.Join(p.argv, " "),
			"cmd": strings.Join(p.argv, " "), "unit": p.unit, "ppid": "1", "stat": "S",
		}
		var line []string
		for _, col := range columns {
			line = append(line, values[strings.TrimSuffix(col, "=")])
		}
		fmt.Fprintln(c.out, strings.Join(line, " "))
	}
	if !found {
		return 1
	}
	return 0
}

// selection are the processes that pgrep and pidwait mean.
type selection struct {
	exact, full, args bool
	parent, session   string
	pattern           string
}

func selected(args []string) selection {
	var s selection
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !strings.HasPrefix(a, "-") {
			s.pattern = a
			continue
		}
		for _, letter := range a[1:] {
			value := ""
			if strings.ContainsRune("PsugU", letter) && i+1 < len(args) {
				i++
				value = args[i]
			}
			switch letter {
			case 'x':
				s.exact = true
			case 'f':
				s.full = true
			case 'a', 'l':
				s.args = true
			case 'P':
				s.parent = value
			case 's':
				s.session = value
			}
		}
	}
	return s
}

// match: here every process's parent is 1, and systemd gives each main process
// a session of its own.
func (s selection) match(p *process) bool {
	text := p.comm()
	if s.full {
		text = strings.Join(p.argv, " ")
	}
	if s.pattern != "" {
		pattern := s.pattern
		if s.exact {
			pattern = "^(" + pattern + ")$"
		}
		if ok, err := regexp.MatchString(pattern, text); !ok || err != nil {
			return false
		}
	}
	if s.session != "" && s.session != strconv.Itoa(p.pid) {
		return false
	}
	return p.pid != 1 && (s.parent == "" || s.parent == "1")
}

func pgrep(_ context.Context, c *call) int {
	s := selected(c.args)
	found := c.h.pids(c.b, s.match)
	for _, p := range found {
		if s.args {
			fmt.Fprintln(c.out, p.pid, strings.Join(p.argv, " "))
		} else {
			fmt.Fprintln(c.out, p.pid)
		}
	}
	if len(found) == 0 {
		return 1
	}
	return 0
}

func pidwait(ctx context.Context, c *call) int {
	found := c.h.pids(c.b, selected(c.args).match)
	if len(found) == 0 {
		return 1
	}
	for _, p := range found {
		select {
		case <-p.gone:
		case <-ctx.Done():
			return 143
		}
	}
	return 0
}

// tail --pid=N -f /dev/null waits; without --pid it is a filter.
func tail(ctx context.Context, c *call) int {
	for _, a := range c.args {
		if n, ok := strings.CutPrefix(a, "--pid="); ok {
			for _, p := range c.h.pids(c.b, func(p *process) bool { return strconv.Itoa(p.pid) == n }) {
				select {
				case <-p.gone:
				case <-ctx.Done():
					return 143
				}
			}
			return 0
		}
	}
	return filter("tail")(ctx, c)
}

// kill [-SIG | -s SIG] PID…
func kill(_ context.Context, c *call) int {
	sig, args := "TERM", c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-s" && len(args) > 1 {
			sig, args = args[1], args[2:]
			continue
		}
		sig, args = args[0][1:], args[1:]
	}
	number, ok := simsystemd.ParseSignal(sig)
	if !ok {
		return c.fail(1, "kill: %s: invalid signal specification", sig)
	}
	code := 0
	for _, a := range args {
		pid, _ := strconv.Atoi(a) // 0: no such process
		owner := c.h.pids(c.b, func(p *process) bool { return p.pid == pid })
		switch {
		case len(owner) == 0:
			code = c.fail(1, "kill: (%s) - No such process", a)
		case c.user != memfs.Root && owner[0].user != c.user:
			code = c.fail(1, "kill: (%s) - Operation not permitted", a)
		default:
			c.h.send(c.b, pid, number)
		}
	}
	return code
}

// journalctl prints the runner unit's lines; it needs root.
func journalctl(_ context.Context, c *call) int {
	if c.user != memfs.Root {
		return c.fail(1, "No journal files were opened due to insufficient permissions.")
	}
	for _, line := range c.h.Journal() {
		fmt.Fprintln(c.out, path.Base(c.h.o.Unit), line)
	}
	return 0
}
