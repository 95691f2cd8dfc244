package memfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Mkdir makes one directory as user; all makes its parents too, and an
// existing directory is no error then.
func (f *FS) Mkdir(name, user string, perm fs.FileMode, all bool) error {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[p]; n != nil {
		if all && n.isDir() {
			return nil
		}
		return fail("mkdir", name, syscall.EEXIST)
	}
	var missing []string
	for dir := p; f.nodes[dir] == nil; dir = path.Dir(dir) {
		missing = append(missing, dir)
	}
	if len(missing) > 1 && !all {
		return fail("mkdir", name, syscall.ENOENT)
	}
	top := f.nodes[path.Dir(missing[len(missing)-1])]
	switch {
	case below(p, f.readOnly):
		return fail("mkdir", name, syscall.EROFS)
	case !top.isDir():
		return fail("mkdir", name, syscall.ENOTDIR)
	case !top.may(user, 2):
		return fail("mkdir", name, syscall.EACCES)
	}
	for i, dir := range missing { // the deepest first; its new parents are open
		mode := fs.FileMode(0o755)
		if i == 0 {
			mode = perm.Perm()
		}
		f.nodes[dir] = &node{mode: fs.ModeDir | mode, owner: user, mod: f.now()}
	}
	return nil
}

// Remove unlinks a file, or an empty directory if dir is set, as user.
func (f *FS) Remove(name, user string, dir bool) error {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reach("unlink", p, user); err != nil {
		return err
	}
	n := f.nodes[p]
	switch {
	case n == nil:
		return fail("unlink", name, syscall.ENOENT)
	case below(p, f.readOnly):
		return fail("unlink", name, syscall.EROFS)
	case !f.nodes[path.Dir(p)].may(user, 2):
		return fail("unlink", name, syscall.EACCES)
	case n.isDir() && !dir:
		return fail("unlink", name, syscall.EISDIR)
	case n.isDir() && len(f.children(p)) > 0:
		return fail("rmdir", name, syscall.ENOTEMPTY)
	}
	delete(f.nodes, p)
	return nil
}

// RemoveAll empties and removes a tree as root; faults do not apply.
func (f *FS) RemoveAll(name string) {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.nodes {
		if k == p || strings.HasPrefix(k, p+"/") {
			delete(f.nodes, k)
		}
	}
}

// Rename moves a file as user, over an existing one too.
func (f *FS) Rename(from, to, user string) error {
	a, b := clean(from), clean(to)
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[a]
	switch {
	case n == nil:
		return fail("rename", from, syscall.ENOENT)
	case below(a, f.readOnly) || below(b, f.readOnly):
		return fail("rename", to, syscall.EROFS)
	case f.nodes[path.Dir(b)] == nil:
		return fail("rename", to, syscall.ENOENT)
	case !f.nodes[path.Dir(a)].may(user, 2) || !f.nodes[path.Dir(b)].may(user, 2):
		return fail("rename", to, syscall.EACCES)
	case n.isDir():
		return fail("rename", from, syscall.EISDIR)
	}
	delete(f.nodes, a)
	f.nodes[b] = n
	return nil
}

// Chmod and Chown change a file as root does.
func (f *FS) Chmod(name string, perm fs.FileMode) error {
	return f.change(name, func(n *node) { n.mode = n.mode.Type() | perm.Perm() })
}

// Chown gives a file to another user.
func (f *FS) Chown(name, owner string) error {
	return f.change(name, func(n *node) { n.owner = owner })
}

func (f *FS) change(name string, act func(*node)) error {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[p]
	switch {
	case n == nil:
		return fail("chmod", name, syscall.ENOENT)
	case below(p, f.readOnly):
		return fail("chmod", name, syscall.EROFS)
	}
	act(n)
	return nil
}

// Stat describes a file as user sees it.
func (f *FS) Stat(name, user string) (fs.FileInfo, error) {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if p != "/" {
		if err := f.reach("stat", p, user); err != nil {
			return nil, err
		}
	}
	n := f.nodes[p]
	if n == nil {
		return nil, fail("stat", name, syscall.ENOENT)
	}
	return infoOf(p, n), nil
}

// May says whether user has the permission bit (4 read, 2 write, 1 execute).
func (f *FS) May(name, user string, bit fs.FileMode) error {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if p != "/" {
		if err := f.reach("access", p, user); err != nil {
			return err
		}
	}
	n := f.nodes[p]
	switch {
	case n == nil:
		return fail("access", name, syscall.ENOENT)
	case bit == 2 && below(p, f.readOnly):
		return fail("access", name, syscall.EROFS)
	case !n.may(user, bit) || user == Root && bit == 1 && !n.isDir() && n.mode&0o111 == 0:
		return fail("access", name, syscall.EACCES)
	}
	return nil
}

// ReadDir lists a directory, by name.
func (f *FS) ReadDir(name, user string) ([]fs.DirEntry, error) {
	p := clean(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[p]
	switch {
	case n == nil:
		return nil, fail("open", name, syscall.ENOENT)
	case !n.isDir():
		return nil, fail("open", name, syscall.ENOTDIR)
	case !n.may(user, 4):
		return nil, fail("open", name, syscall.EACCES)
	}
	var out []fs.DirEntry
	for _, child := range f.children(p) {
		out = append(out, fs.FileInfoToDirEntry(infoOf(child, f.nodes[child])))
	}
	return out, nil
}

func (f *FS) children(dir string) []string {
	var out []string
	for k := range f.nodes {
		if k != "/" && path.Dir(k) == dir {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// Info is a file's description.
type Info struct {
	name  string
	size  int64
	mode  fs.FileMode
	mod   time.Time
	owner string
}

func infoOf(p string, n *node) Info {
	return Info{name: path.Base(p), size: int64(len(n.data)), mode: n.mode, mod: n.mod, owner: n.owner}
}

// Name implements fs.FileInfo.
func (i Info) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i Info) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (i Info) Mode() fs.FileMode { return i.mode }

// ModTime implements fs.FileInfo.
func (i Info) ModTime() time.Time { return i.mod }

// IsDir implements fs.FileInfo.
func (i Info) IsDir() bool { return i.mode.IsDir() }

// Sys implements fs.FileInfo: nothing.
func (i Info) Sys() any { return nil }

// Owner is the owning user's name.
func (i Info) Owner() string { return i.owner }
