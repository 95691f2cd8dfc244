package memfs_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
)

func TestOwnersAndModesDecideWhoMayDoWhat(t *testing.T) {
	f := memfs.New(time.Now)
	if err := f.Mkdir("/home/ann/private", memfs.Root, 0o700, true); err != nil {
		t.Fatal(err)
	}
	f.Put("/home/ann/private/key", "secret", "ann", 0o600)
	for _, c := range []struct {
		what string
		err  error
		want error
	}{
		{"a new parent is open", f.May("/home/ann", "bob", 1), nil},
		{"what lies behind a closed directory cannot be reached", f.May("/home/ann/private/key", "ann", 4), syscall.EACCES},
		{"nor read", readErr(f, "/home/ann/private/key", "ann"), syscall.EACCES},
		{"root may", readErr(f, "/home/ann/private/key", memfs.Root), nil},
		{"a stranger may not write into root's directory", f.Create("/home/x", "bob", 0o644, true), syscall.EACCES},
		{"nor rename there", f.Rename("/home/ann/private/key", "/home/key", "bob"), syscall.EACCES},
		{"a directory is no file", readErr(f, "/home", memfs.Root), syscall.EISDIR},
		{"what is not there is not", readErr(f, "/nowhere", memfs.Root), fs.ErrNotExist},
		{"a full directory is not removed", f.Remove("/home", memfs.Root, true), syscall.ENOTEMPTY},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.err, c.want)
		}
	}
}

func TestAFullFileSystemTakesNamesButNoBytes(t *testing.T) {
	f := memfs.New(time.Now)
	_ = f.Mkdir("/run", memfs.Root, 0o755, false)
	f.Fill("/run")
	if err := f.Create("/run/x", memfs.Root, 0o644, true); err != nil {
		t.Fatal(err)
	}
	if err := f.Append("/run/x", []byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("append: %v", err)
	}
	f.Drain()
	if err := f.Append("/run/x", []byte("x")); err != nil {
		t.Errorf("append after it: %v", err)
	}
}

func TestRenameReplacesAWholeFile(t *testing.T) {
	f := memfs.New(time.Now)
	f.Put("/etc/new", "two", memfs.Root, 0o644)
	f.Put("/etc/old", "one", memfs.Root, 0o644)
	if err := f.Rename("/etc/new", "/etc/old", memfs.Root); err != nil {
		t.Fatal(err)
	}
	if text, err := f.ReadFile("/etc/old", "bob"); err != nil || string(text) != "two" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := f.Stat("/etc/new", memfs.Root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name: %v", err)
	}
}

func readErr(f *memfs.FS, name, user string) error {
	_, err := f.ReadFile(name, user)
	return err
}
