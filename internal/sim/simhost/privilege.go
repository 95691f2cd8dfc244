package simhost

import (
	"context"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
)

// sh [-c TEXT [NAME [ARG…]]] | sh -s [ARG…] | sh FILE [ARG…], with options.
func shell(ctx context.Context, c *call) int {
	args := c.args
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') && args[0] != "--" {
		opt := args[0]
		args = args[1:]
		switch {
		case strings.Contains(opt, "c") && !strings.HasPrefix(opt, "--"):
			if len(args) == 0 {
				return c.fail(2, "sh: 0: -c requires an argument")
			}
			var params []string
			if len(args) > 2 {
				params = args[2:]
			}
			return c.script(ctx, "sh", strings.NewReader(args[0]), params)
		case strings.Contains(opt, "s"):
			return c.stdinScript(ctx, slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--" }))
		}
	}
	if len(args) == 0 || args[0] == "--" {
		return c.stdinScript(ctx, nil)
	}
	text, err := c.h.files.ReadFile(c.path(args[0]), c.user)
	if err != nil {
		return c.fail(127, "sh: 0: cannot open %s: %s", args[0], reason(err))
	}
	return c.script(ctx, args[0], strings.NewReader(string(text)), args[1:])
}

// stdinScript reads the script from standard input, which is empty afterwards.
func (c *call) stdinScript(ctx context.Context, params []string) int {
	text, err := io.ReadAll(c.in)
	if err != nil {
		return c.fail(2, "sh: 0: read error: %v", err)
	}
	sub := *c
	sub.in = strings.NewReader("")
	return sub.script(ctx, "sh", strings.NewReader(string(text)), params)
}

// as runs a command as another user.
func (c *call) as(ctx context.Context, user string, args []string) int {
	sub := *c
	sub.user, sub.env, sub.args = user, c.h.environ(user), args[1:]
	return sub.exec(ctx, args[0])
}

// sudo [-n] [-H] [-u USER] [--] COMMAND…
func sudo(ctx context.Context, c *call) int {
	target := memfs.Root
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		if (opt == "-u" || opt == "--user") && len(args) > 0 {
			target, args = args[0], args[1:]
		}
		if opt == "-V" {
			return 0
		}
		if opt == "-l" { // may this be run?
			if c.h.sudoRefuses(c.user, target, args) {
				return 1
			}
			_, _ = io.WriteString(c.out, strings.Join(args, " ")+"\n")
			return 0
		}
	}
	switch {
	case len(args) == 0:
		return c.fail(1, "usage: sudo -h | -K | -k | -V")
	case !c.h.knows(target):
		return c.fail(1, "sudo: unknown user %s", target)
	case c.h.sudoRefuses(c.user, target, args):
		return c.fail(1, "sudo: a password is required")
	case target != memfs.Root && c.h.files.May(c.dir, target, 1) != nil:
		return c.fail(1, "sudo: cannot chdir to %s: Permission denied", c.dir)
	}
	return c.as(ctx, target, args)
}

// runuser -u USER -- COMMAND…, for root only.
func runuser(ctx context.Context, c *call) int {
	if c.user != memfs.Root {
		return c.fail(1, "runuser: may not be used by non-root users")
	}
	target, args := "", c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		if opt == "-u" && len(args) > 0 {
			target, args = args[0], args[1:]
		}
	}
	if len(args) == 0 || !c.h.knows(target) {
		return c.fail(1, "runuser: user %s does not exist", target)
	}
	return c.as(ctx, target, args)
}

// env [-i] [-u NAME]… [NAME=VALUE]… COMMAND…
func env(ctx context.Context, c *call) int {
	sub := *c
	args := c.args
	for len(args) > 0 {
		switch {
		case args[0] == "-i":
			sub.env = nil
		case args[0] == "-u" && len(args) > 1:
			name := args[1] + "="
			sub.env = slices.DeleteFunc(slices.Clone(sub.env), func(e string) bool { return strings.HasPrefix(e, name) })
			args = args[1:]
		case strings.Contains(args[0], "="):
			sub.env = append(slices.Clone(sub.env), args[0])
		case args[0] == "--":
		default:
			sub.args = args[1:]
			return sub.exec(ctx, args[0])
		}
		args = args[1:]
	}
	for _, e := range sub.env {
		_, _ = io.WriteString(c.out, e+"\n")
	}
	return 0
}

// run executes its operands: nohup, setsid, nice without options of interest.
func run(ctx context.Context, c *call) int {
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	if len(args) == 0 {
		return 125
	}
	return c.with(args[1:]).exec(ctx, args[0])
}

// timeout [-k D] [-s SIG] [--foreground] D COMMAND…
func timeout(ctx context.Context, c *call) int {
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if slices.Contains([]string{"-k", "-s", "--kill-after", "--signal"}, args[0]) && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) < 2 {
		return c.fail(125, "timeout: missing operand")
	}
	seconds, err := strconv.ParseFloat(strings.TrimSuffix(args[0], "s"), 64)
	if err != nil {
		return c.fail(125, "timeout: invalid time interval '%s'", args[0])
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if seconds > 0 {
		limit := c.h.o.Clock.AfterFunc(time.Duration(seconds*float64(time.Second)), func() { cancel(context.DeadlineExceeded) })
		defer limit.Stop()
	}
	code := c.with(args[2:]).exec(inner, args[1])
	if ctx.Err() == nil && context.Cause(inner) == context.DeadlineExceeded { //nolint:errorlint // the very value from above
		return 124
	}
	return code
}

// sudoRefuses says whether the policy is against the command.
func (h *Host) sudoRefuses(user, target string, args []string) bool {
	if h.faults.sudoDenies(args) {
		return true
	}
	if user == memfs.Root || h.o.Sudoers == "" {
		return false
	}
	return !h.sudoers().allows(user, target, path.Base(args[0]), args[1:])
}
