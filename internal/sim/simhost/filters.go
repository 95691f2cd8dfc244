package simhost

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
)

// filters are commands that only turn standard input into output. They run as
// real processes, with files of the simulated disk given on standard input.
var filters = []string{"sed", "awk", "grep", "cut", "tr", "sort", "uniq", "head", "wc", "sha256sum", "md5sum", "base64", "od", "tail"}

// Lacking lists the filters that this machine has not: without them the simulated
// hosts answer nothing.
func Lacking() []string {
	var names []string
	for _, name := range filters {
		if _, err := exec.LookPath(name); err != nil {
			names = append(names, name)
		}
	}
	return names
}

// programFirst are filters whose first operand is a program, unless -e or -f
// has given one.
var programFirst = map[string]bool{"sed": true, "awk": true, "grep": true}

// takesValue are the options of filters that are followed by a value.
var takesValue = map[string]string{
	"sed": "e", "awk": "vF", "grep": "eAm", "cut": "dfcb", "head": "nc", "sort": "tk", "tr": "", "od": "AtNj", "tail": "nc", "wc": "", "uniq": "fs",
}

func filter(name string) handler {
	return func(ctx context.Context, c *call) int {
		argv, files := splitFilter(name, c.args)
		in, names := c.in, files
		if len(files) > 0 {
			text, code := c.joined(name, files)
			if code != 0 {
				return code
			}
			in = strings.NewReader(text)
		}
		// #nosec G204 -- name is one of the filters above
		cmd := exec.CommandContext(ctx, name, argv...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
		cmd.Dir = "/"
		cmd.Stdin, cmd.Stderr = in, c.err
		var out strings.Builder
		cmd.Stdout = c.out
		if len(names) == 1 && strings.HasSuffix(name, "sum") {
			cmd.Stdout = &out
		}
		err := cmd.Run()
		if out.Len() > 0 {
			_, _ = io.WriteString(c.out, strings.Replace(out.String(), " -\n", " "+names[0]+"\n", 1))
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return max(exit.ExitCode(), 1)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return c.fail(126, "%s: %v", name, err)
		}
		return 0
	}
}

// splitFilter separates what the filter is told from the files it reads.
func splitFilter(name string, args []string) (argv, files []string) {
	program := programFirst[name]
	two := name == "tr" // its operands are no files
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case len(a) > 1 && a[0] == '-':
			argv = append(argv, a)
			if strings.ContainsAny(a[1:], "ef") && programFirst[name] && !strings.HasPrefix(a, "--") && name != "awk" {
				program = false
			}
			last := a[len(a)-1:]
			if len(a) == 2 && strings.Contains(takesValue[name], last) && i+1 < len(args) {
				i++
				argv = append(argv, args[i])
			}
		case program:
			argv, program = append(argv, a), false
		case two || a == "-":
			argv = append(argv, a)
		default:
			files = append(files, a)
		}
	}
	return argv, files
}

// joined reads the files, one after another.
func (c *call) joined(name string, files []string) (string, int) {
	var b strings.Builder
	for _, f := range files {
		text, err := c.h.files.ReadFile(c.path(f), c.user)
		if err != nil {
			return "", c.fail(2, "%s: %s: %s", name, f, reason(err))
		}
		b.Write(text)
	}
	return b.String(), 0
}
