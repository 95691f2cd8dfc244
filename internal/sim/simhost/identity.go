package simhost

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// Commands about who, where and when one is.

func id(_ context.Context, c *call) int {
	options, names := operands(c.args)
	user := c.user
	if len(names) > 0 {
		user = names[0]
	}
	if !c.h.knows(user) {
		return c.fail(1, "id: '%s': no such user", user)
	}
	number := uid(user)
	switch {
	case has(options, "n"):
		fmt.Fprintln(c.out, user)
	case has(options, "ugG"):
		fmt.Fprintln(c.out, number)
	default:
		fmt.Fprintf(c.out, "uid=%d(%s) gid=%d(%s)\n", number, user, number, user)
	}
	return 0
}

func (h *Host) knows(user string) bool {
	return user == memfs.Root || user == h.o.User || user == h.o.RunnerUser
}

func uid(user string) int {
	if user == memfs.Root {
		return 0
	}
	return 1000
}

func whoami(_ context.Context, c *call) int {
	fmt.Fprintln(c.out, c.user)
	return 0
}

func uname(_ context.Context, c *call) int {
	fmt.Fprintln(c.out, "Linux")
	return 0
}

func date(_ context.Context, c *call) int {
	now := c.h.o.Clock.Now().Add(c.h.o.ClockOff)
	if len(c.args) > 0 && strings.HasPrefix(c.args[0], "+%s") {
		fmt.Fprintln(c.out, now.Unix())
		return 0
	}
	fmt.Fprintln(c.out, now.UTC().Format(time.UnixDate))
	return 0
}

func hostname(_ context.Context, c *call) int {
	fmt.Fprintln(c.out, c.h.o.Name)
	return 0
}

func sleep(ctx context.Context, c *call) int {
	total := time.Duration(0)
	for _, a := range c.args {
		d, err := time.ParseDuration(strings.TrimSuffix(a, "s") + "s")
		if err != nil {
			return c.fail(1, "sleep: invalid time interval '%s'", a)
		}
		total += d
	}
	if !simclock.Sleep(ctx, c.h.o.Clock, total) {
		return 143
	}
	return 0
}

func which(_ context.Context, c *call) int {
	for _, name := range c.args {
		base := path.Base(name)
		if _, ok := commands[base]; !ok || c.h.faults.lacks(base) {
			return 1
		}
		fmt.Fprintln(c.out, "/usr/bin/"+base)
	}
	return 0
}

func getent(_ context.Context, c *call) int {
	if len(c.args) < 2 || c.args[0] != "passwd" || !c.h.knows(c.args[1]) {
		return 2
	}
	home := "/home/" + c.args[1]
	if c.args[1] == memfs.Root {
		home = "/root"
	}
	n := uid(c.args[1])
	fmt.Fprintf(c.out, "%s:x:%d:%d::%s:/bin/bash\n", c.args[1], n, n, home)
	return 0
}
