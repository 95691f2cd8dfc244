package memfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Root is the user who may do everything.
const Root = "root"

type node struct {
	data  []byte
	mode  fs.FileMode // type and permission bits
	owner string
	mod   time.Time
	gen   func() []byte // content made at each read (/proc)
}

func (n *node) isDir() bool { return n.mode.IsDir() }

// FS is one file system. It is safe for concurrent use.
type FS struct {
	now func() time.Time

	mu       sync.Mutex
	nodes    map[string]*node
	full     []string // no byte more can be written below these
	readOnly []string // nothing can be changed below these
}

// New makes a file system with a root directory.
func New(now func() time.Time) *FS {
	return &FS{now: now, nodes: map[string]*node{"/": {mode: fs.ModeDir | 0o755, owner: Root}}}
}

// Fill makes the file system below dir full: creating still works, writing a
// byte fails with ENOSPC. Drain ends it.
func (f *FS) Fill(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = append(f.full, clean(dir))
}

// Drain makes room again everywhere.
func (f *FS) Drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = nil
}

// Protect makes everything below dir read-only (EROFS), also for root.
func (f *FS) Protect(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readOnly = append(f.readOnly, clean(dir))
}

// Unprotect makes everything writable again.
func (f *FS) Unprotect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readOnly = nil
}

func clean(p string) string { return path.Clean("/" + p) }

func below(p string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return p == d || strings.HasPrefix(p, d+"/") })
}

func fail(op, p string, err error) error { return &fs.PathError{Op: op, Path: p, Err: err} }

// may says whether user has the permission bit (4 read, 2 write, 1 execute).
func (n *node) may(user string, bit fs.FileMode) bool {
	switch user {
	case Root:
		return true
	case n.owner:
		return n.mode&(bit<<6) != 0
	}
	return n.mode&bit != 0
}

// reach checks that user may pass every directory above p. Lock held.
func (f *FS) reach(op, p, user string) error {
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		n := f.nodes[dir]
		switch {
		case n == nil:
			return fail(op, p, syscall.ENOENT)
		case !n.isDir():
			return fail(op, p, syscall.ENOTDIR)
		case !n.may(user, 1):
			return fail(op, p, syscall.EACCES)
		}
		if dir == "/" {
			return nil
		}
	}
}

// ReadFile yields a file's content as user sees it.
func (f *FS) ReadFile(name, user string) ([]byte, error) {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reach("open", p, user); err != nil {
		return nil, err
	}
	n := f.nodes[p]
	switch {
	case n == nil:
		return nil, fail("open", name, syscall.ENOENT)
	case n.isDir():
		return nil, fail("read", name, syscall.EISDIR)
	case !n.may(user, 4):
		return nil, fail("open", name, syscall.EACCES)
	case n.gen != nil:
		return n.gen(), nil
	}
	return slices.Clone(n.data), nil
}

// Create opens a file for writing as user: it is made with perm if it is not
// there, and emptied if truncate is set.
func (f *FS) Create(name, user string, perm fs.FileMode, truncate bool) error {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reach("open", p, user); err != nil {
		return err
	}
	if below(p, f.readOnly) {
		return fail("open", name, syscall.EROFS)
	}
	n := f.nodes[p]
	switch {
	case n != nil && n.isDir():
		return fail("open", name, syscall.EISDIR)
	case n != nil && (!n.may(user, 2) || n.gen != nil):
		return fail("open", name, syscall.EACCES)
	case n == nil && !f.nodes[path.Dir(p)].may(user, 2):
		return fail("open", name, syscall.EACCES)
	case n == nil:
		n = &node{mode: perm.Perm(), owner: user}
		f.nodes[p] = n
	}
	if truncate {
		n.data = nil
	}
	n.mod = f.now()
	return nil
}

// Append adds bytes to a file that was opened by Create.
func (f *FS) Append(name string, data []byte) error {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[p]
	switch {
	case n == nil:
		return nil // unlinked while open: the bytes go nowhere
	case len(data) > 0 && below(p, f.full):
		return fail("write", name, syscall.ENOSPC)
	}
	n.data, n.mod = append(n.data, data...), f.now()
	return nil
}

// Put writes a whole file as root, with its directories; faults do not apply.
func (f *FS) Put(name, content, owner string, perm fs.FileMode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := clean(name)
	f.parents(p)
	f.nodes[p] = &node{data: []byte(content), mode: perm.Perm(), owner: owner, mod: f.now()}
}

// Generate puts a file whose content is made at each read.
func (f *FS) Generate(name string, gen func() []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := clean(name)
	f.parents(p)
	f.nodes[p] = &node{mode: 0o444, owner: Root, gen: gen}
}

func (f *FS) parents(p string) {
	for dir := path.Dir(p); f.nodes[dir] == nil; dir = path.Dir(dir) {
		f.nodes[dir] = &node{mode: fs.ModeDir | 0o755, owner: Root, mod: f.now()}
	}
}
