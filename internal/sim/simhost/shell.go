package simhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
)

// call is one command as its handler sees it: who calls, where, with what.
type call struct {
	h    *Host
	b    *boot
	fds  *fdTable // of the calling shell
	user string
	dir  string
	env  []string
	args []string // without the name
	in   io.Reader
	out  io.Writer
	err  io.Writer
}

// fail prints "name: text" and yields code.
func (c *call) fail(code int, format string, args ...any) int {
	fmt.Fprintf(c.err, format+"\n", args...)
	return code
}

// with makes the same call with another argv.
func (c *call) with(args []string) *call {
	other := *c
	other.args = args
	return &other
}

// path makes an operand absolute.
func (c *call) path(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(c.dir, name)
}

// run executes argv outside of any session, as a unit's command does.
func (h *Host) run(ctx context.Context, b *boot, user string, argv []string) int {
	c := &call{
		h: h, b: b, user: user, dir: "/", env: h.environ(user), args: argv[1:],
		in: strings.NewReader(""), out: noteWriter{h}, err: noteWriter{h},
	}
	return c.exec(ctx, argv[0])
}

// noteWriter writes into the journal.
type noteWriter struct{ h *Host }

func (w noteWriter) Write(p []byte) (int, error) {
	w.h.note(strings.TrimSpace(string(p)))
	return len(p), nil
}

func (h *Host) environ(user string) []string {
	home := "/home/" + user
	if user == memfs.Root {
		home = "/root"
	}
	return []string{"HOME=" + home, "USER=" + user, "LOGNAME=" + user, "SHELL=/bin/sh", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin"}
}

// exec finds the command and runs it: a handler, or a script on the disk.
func (c *call) exec(ctx context.Context, name string) int {
	if err := ctx.Err(); err != nil {
		return 143
	}
	base := path.Base(name)
	if handler, ok := commands[base]; ok && !c.h.faults.lacks(base) {
		return handler(ctx, c)
	}
	if strings.Contains(name, "/") {
		if text, err := c.h.files.ReadFile(c.path(name), c.user); err == nil {
			return c.script(ctx, name, strings.NewReader(string(text)), c.args)
		}
	}
	return c.fail(127, "sh: 1: %s: not found", name)
}

// script runs a shell script with params as "$@". It reads all of it first:
// what comes after a cut is not run, and an unfinished command neither.
func (c *call) script(ctx context.Context, name string, src io.Reader, params []string) int {
	file := &syntax.File{Name: name}
	var parseErr error
	for stmt, err := range syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).StmtsSeq(src) {
		if err != nil {
			parseErr = err
			break
		}
		file.Stmts = append(file.Stmts, stmt)
	}
	rewriteDescriptors(file)
	shell := *c
	shell.fds = newFDTable(c.h.locks)
	defer shell.fds.close()
	code := shell.interpret(ctx, file, params)
	if parseErr != nil {
		return c.fail(2, "%s: %v", name, parseErr)
	}
	return code
}

func (c *call) interpret(ctx context.Context, file *syntax.File, params []string) int {
	in, done := pipeFrom(c.in)
	defer done()
	r, err := interp.New(
		interp.Env(expand.ListEnviron(c.env...)),
		interp.Dir("/"),
		interp.Params(append([]string{"--"}, params...)...),
		interp.StdIO(in, c.out, c.err),
		interp.CallHandler(c.onCall),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return c.onExec }), // none is the system's
		interp.OpenHandler(c.onOpen),
		interp.StatHandler(c.onStat),
		interp.AccessHandler(c.onAccess),
		interp.ReadDirHandler2(c.onReadDir),
	)
	if err != nil {
		return c.fail(2, "sh: %v", err)
	}
	err = r.Run(ctx, file)
	if status, ok := errors.AsType[interp.ExitStatus](err); ok {
		return int(status)
	}
	if err != nil {
		return c.fail(2, "sh: %v", err)
	}
	return 0
}

// pipeFrom makes r a file, as the interpreter wants it; done ends the copying.
func pipeFrom(r io.Reader) (*os.File, func()) {
	if f, ok := r.(*os.File); ok {
		return f, func() {}
	}
	if r == nil {
		r = strings.NewReader("")
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		return nil, func() {}
	}
	go func() {
		_, _ = io.Copy(pw, r) // the reader's end is the end
		_ = pw.Close()
	}()
	return pr, func() { _ = pr.Close() }
}

// The interpreter's own builtins that look at the real machine, or that it
// lacks, become commands of ours.
var replaced = map[string]string{"kill": "kill", "type": "which", "umask": "true", "ulimit": "true", "hash": "true", "times": "true"}

func (c *call) onCall(_ context.Context, args []string) ([]string, error) {
	switch {
	case args[0] == "command" && len(args) > 2 && (args[1] == "-v" || args[1] == "-V"):
		return append([]string{"/usr/bin/which"}, args[2:]...), nil
	case args[0] == "trap":
		kept := slices.DeleteFunc(slices.Clone(args), func(a string) bool {
			return slices.Contains([]string{"HUP", "INT", "TERM", "PIPE", "QUIT"}, a)
		})
		if len(kept) < 3 {
			return []string{"true"}, nil
		}
		return kept, nil
	case replaced[args[0]] != "":
		return append([]string{"/usr/bin/" + replaced[args[0]]}, args[1:]...), nil
	}
	return args, nil
}

func (c *call) onExec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	sub := *c
	sub.args, sub.dir = args[1:], hc.Dir
	sub.in, sub.out, sub.err = hc.Stdin, hc.Stdout, hc.Stderr
	sub.env = nil
	for name, v := range hc.Env.Each {
		if v.Exported && v.IsSet() {
			sub.env = append(sub.env, name+"="+v.String())
		}
	}
	if code := sub.exec(ctx, args[0]); code != 0 {
		return interp.ExitStatus(code & 0xff)
	}
	return nil
}
