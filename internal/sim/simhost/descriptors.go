package simhost

import (
	"io"
	"strconv"
	"sync"
	"syscall"

	"mvdan.cc/sh/v3/syntax"
)

// The interpreter knows descriptors 0 to 2 only. Scripts that keep a lock on
// 9 or a copy of their output on 3 are rewritten before they run: `exec 9<X`
// becomes the command `__fd 9 < X`, and `>&3` becomes `>/dev/fd/3`.

func rewriteDescriptors(file *syntax.File) {
	syntax.Walk(file, func(n syntax.Node) bool {
		stmt, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		if isBareExec(stmt) && highDescriptor(stmt.Redirs[0].N) {
			stmt.Cmd = descriptorCall(stmt.Redirs)
			stmt.Redirs = nil
			return true
		}
		for _, rd := range stmt.Redirs {
			if rd.Op == syntax.DplOut && highDescriptor(literal(rd.Word)) {
				rd.Op, rd.Word = syntax.RdrOut, word("/dev/fd/"+literal(rd.Word).Value)
			}
		}
		return true
	})
}

func isBareExec(stmt *syntax.Stmt) bool {
	c, ok := stmt.Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) == 1 && c.Args[0].Lit() == "exec" && len(stmt.Redirs) > 0
}

func highDescriptor(n *syntax.Lit) bool {
	if n == nil {
		return false
	}
	i, err := strconv.Atoi(n.Value)
	return err == nil && i > 2
}

func literal(w *syntax.Word) *syntax.Lit {
	if w == nil || w.Lit() == "" {
		return nil
	}
	return &syntax.Lit{Value: w.Lit()}
}

func word(text string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: text}}}
}

func descriptorCall(redirs []*syntax.Redirect) *syntax.CallExpr {
	c := &syntax.CallExpr{Args: []*syntax.Word{word("__fd")}}
	for _, rd := range redirs {
		c.Args = append(c.Args, word(rd.N.Value), word(rd.Op.String()), rd.Word)
	}
	return c
}

// fdTable is a shell's descriptors above 2.
type fdTable struct {
	locks *locks
	mu    sync.Mutex
	outs  map[string]io.Writer
	files map[string]string // number → path
}

func newFDTable(l *locks) *fdTable {
	return &fdTable{locks: l, outs: map[string]io.Writer{}, files: map[string]string{}}
}

// change is __fd: number, operator, word, and again.
func (t *fdTable) change(c *call) int {
	for args := c.args; len(args) >= 3; args = args[3:] {
		n, op, what := args[0], args[1], args[2]
		switch {
		case what == "-":
			t.drop(n)
		case op == ">&" && what == "1":
			t.set(n, c.out, "")
		case op == ">&" && what == "2":
			t.set(n, c.err, "")
		case op == "<" || op == ">" || op == ">>":
			if code := t.file(c, n, op, what); code != 0 {
				return code
			}
		default:
			return c.fail(2, "sh: %s%s%s: bad descriptor", n, op, what)
		}
	}
	return 0
}

func (t *fdTable) file(c *call, n, op, name string) int {
	p := c.path(name)
	if op == "<" {
		if _, err := c.h.files.Stat(p, c.user); err != nil {
			return c.fail(2, "sh: 1: cannot open %s: No such file", name)
		}
		t.set(n, nil, p)
		return 0
	}
	if err := c.h.files.Create(p, c.user, 0o666, op == ">"); err != nil {
		return c.fail(2, "sh: 1: cannot create %s: %v", name, reason(err))
	}
	t.set(n, &fileWriter{h: c.h, name: p}, p)
	return 0
}

func (t *fdTable) set(n string, out io.Writer, file string) {
	t.drop(n)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outs[n], t.files[n] = out, file
}

// drop closes a descriptor; the lock held on it is released.
func (t *fdTable) drop(n string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.outs, n)
	delete(t.files, n)
	t.locks.release(t, n)
}

func (t *fdTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.locks.release(t, "")
}

func (t *fdTable) name(n string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files[n]
}

// open yields the writer behind /dev/fd/N.
func (t *fdTable) open(n string) (io.ReadWriteCloser, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.outs[n]
	if w == nil {
		return nil, syscall.EBADF
	}
	return shared{w}, nil
}

// shared is a writer that others close.
type shared struct{ io.Writer }

func (shared) Read([]byte) (int, error) { return 0, syscall.EBADF }
func (shared) Close() error             { return nil }
