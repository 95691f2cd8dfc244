package simhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
)

// handler is one external command.
type handler func(ctx context.Context, c *call) int

// commands is /usr/bin and its like. Filters are added by filters.go.
var commands map[string]handler

func init() { // the handlers call each other through this map
	commands = map[string]handler{
		"cat": cat, "tee": tee, "mkdir": mkdir, "rm": remove, "mv": move, "chmod": chmod, "ls": list,
		"dirname": pathPart(path.Dir), "basename": pathPart(path.Base), "readlink": readlink, "realpath": readlink,
		"true": succeed, "sync": succeed, "test": nil, "id": id, "whoami": whoami, "uname": uname, "date": date,
		"hostname": hostname, "sleep": sleep, "env": env, "which": which, "getent": getent, "loginctl": succeed,
		"sh": shell, "bash": shell, "dash": shell, "sudo": sudo, "runuser": runuser, "flock": flock, "timeout": timeout,
		"nohup": run, "setsid": run, "nice": run, "__fd": descriptor,
		"systemctl": systemctl, "reboot": reboot, "podman": podmanCommand, "journalctl": journalctl,
		"ps": ps, "pgrep": pgrep, "pidwait": pidwait, "kill": kill, "tail": tail, "gitlab-runner": gitlabRunner, "curl": curl,
	}
	delete(commands, "test") // a builtin of the shell
	for _, name := range filters {
		if commands[name] != nil {
			continue // tail --pid is more than a filter
		}
		commands[name] = filter(name)
	}
}

func succeed(context.Context, *call) int { return 0 }

func descriptor(_ context.Context, c *call) int { return c.fds.change(c) }

// reason is the error's text without the path, as libc words it.
func reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		text := errno.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return err.Error()
}

// operands splits off options; a lone "-" is an operand.
func operands(args []string) (options, rest []string) {
	for i, a := range args {
		switch {
		case a == "--":
			return options, append(rest, args[i+1:]...)
		case len(a) > 1 && a[0] == '-':
			options = append(options, a)
		default:
			rest = append(rest, a)
		}
	}
	return options, rest
}

func has(options []string, letters string) bool {
	for _, o := range options {
		if !strings.HasPrefix(o, "--") && strings.ContainsAny(o[1:], letters) {
			return true
		}
	}
	return false
}

func cat(_ context.Context, c *call) int {
	_, names := operands(c.args)
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, name := range names {
		if name == "-" {
			_, _ = io.Copy(c.out, c.in) // a reader that went away is no fault of cat
			continue
		}
		text, err := c.h.files.ReadFile(c.path(name), c.user)
		if err != nil {
			code = c.fail(1, "cat: %s: %s", name, reason(err))
			continue
		}
		_, _ = c.out.Write(text)
	}
	return code
}

func tee(_ context.Context, c *call) int {
	options, names := operands(c.args)
	text, err := io.ReadAll(c.in)
	if err != nil {
		return c.fail(1, "tee: read error: %v", err)
	}
	_, _ = c.out.Write(text)
	code := 0
	for _, name := range names {
		err := c.h.files.Create(c.path(name), c.user, 0o644, !has(options, "a"))
		if err == nil {
			err = c.h.files.Append(c.path(name), text)
		}
		if err != nil {
			code = c.fail(1, "tee: %s: %s", name, reason(err))
		}
	}
	return code
}

func mkdir(_ context.Context, c *call) int {
	options, names := operands(c.args)
	code := 0
	for _, name := range names {
		if err := c.h.files.Mkdir(c.path(name), c.user, 0o755, has(options, "p")); err != nil {
			code = c.fail(1, "mkdir: cannot create directory '%s': %s", name, reason(err))
		}
	}
	return code
}

func remove(_ context.Context, c *call) int {
	options, names := operands(c.args)
	force, deep := has(options, "f"), has(options, "rR")
	code := 0
	for _, name := range names {
		if deep {
			c.h.files.RemoveAll(c.path(name))
			continue
		}
		err := c.h.files.Remove(c.path(name), c.user, has(options, "d"))
		if err != nil && (!force || !errors.Is(err, fs.ErrNotExist)) {
			code = c.fail(1, "rm: cannot remove '%s': %s", name, reason(err))
		}
	}
	return code
}

func move(_ context.Context, c *call) int {
	_, names := operands(c.args)
	if len(names) != 2 {
		return c.fail(1, "mv: one file at a time")
	}
	to := c.path(names[1])
	if info, err := c.h.files.Stat(to, memfs.Root); err == nil && info.IsDir() {
		to = path.Join(to, path.Base(names[0]))
	}
	if err := c.h.files.Rename(c.path(names[0]), to, c.user); err != nil {
		return c.fail(1, "mv: cannot move '%s' to '%s': %s", names[0], names[1], reason(err))
	}
	return 0
}

func chmod(_ context.Context, c *call) int {
	_, names := operands(c.args)
	if len(names) < 2 {
		return c.fail(1, "chmod: missing operand")
	}
	mode, err := strconv.ParseUint(names[0], 8, 12)
	if err != nil {
		return c.fail(1, "chmod: invalid mode: '%s'", names[0])
	}
	for _, name := range names[1:] {
		if err := c.h.files.Chmod(c.path(name), fs.FileMode(mode)); err != nil {
			return c.fail(1, "chmod: cannot access '%s': %s", name, reason(err))
		}
	}
	return 0
}

// ls prints names only, one a line.
func list(_ context.Context, c *call) int {
	options, names := operands(c.args)
	if len(names) == 0 {
		names = []string{c.dir}
	}
	code := 0
	for _, name := range names {
		info, err := c.h.files.Stat(c.path(name), c.user)
		if err != nil {
			code = c.fail(2, "ls: cannot access '%s': %s", name, reason(err))
			continue
		}
		if !info.IsDir() || has(options, "d") {
			fmt.Fprintln(c.out, name)
			continue
		}
		entries, err := c.h.files.ReadDir(c.path(name), c.user)
		if err != nil {
			code = c.fail(2, "ls: cannot open directory '%s': %s", name, reason(err))
		}
		for _, e := range entries {
			if has(options, "aA") || !strings.HasPrefix(e.Name(), ".") {
				fmt.Fprintln(c.out, e.Name())
			}
		}
	}
	return code
}

func pathPart(part func(string) string) handler {
	return func(_ context.Context, c *call) int {
		_, names := operands(c.args)
		for _, name := range names {
			fmt.Fprintln(c.out, part(name))
		}
		return 0
	}
}

// readlink: nothing here is a link, except a process's program.
func readlink(_ context.Context, c *call) int {
	options, names := operands(c.args)
	for _, name := range names {
		p := c.path(name)
		if pid, ok := strings.CutSuffix(strings.TrimPrefix(p, "/proc/"), "/exe"); ok {
			line, err := c.h.files.ReadFile("/proc/"+pid+"/cmdline", c.user)
			if err != nil {
				return 1
			}
			program, _, _ := strings.Cut(string(line), "\x00")
			fmt.Fprintln(c.out, program)
			continue
		}
		if !has(options, "fem") {
			return 1
		}
		fmt.Fprintln(c.out, path.Clean(p))
	}
	return 0
}
