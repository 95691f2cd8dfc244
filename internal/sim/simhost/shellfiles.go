package simhost

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"mvdan.cc/sh/v3/interp"
)

// How the shell sees files: those of the simulated disk, and no others.

func (c *call) onOpen(ctx context.Context, name string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	p := name
	if !path.IsAbs(p) {
		p = path.Join(interp.HandlerCtx(ctx).Dir, p)
	}
	if n, ok := strings.CutPrefix(p, "/dev/fd/"); ok {
		return c.fds.open(n)
	}
	if p == "/dev/null" {
		return os.OpenFile(os.DevNull, flag&^(os.O_CREATE|os.O_TRUNC|os.O_APPEND), 0)
	}
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		if err := c.h.files.Create(p, c.user, perm, flag&os.O_TRUNC != 0); err != nil {
			return nil, err
		}
		return &fileWriter{h: c.h, name: p}, nil
	}
	text, err := c.h.files.ReadFile(p, c.user)
	if err != nil {
		return nil, err
	}
	return readable(text)
}

// readable makes content a file: a pipe that somebody fills.
func readable(text []byte) (io.ReadWriteCloser, error) {
	pr, pw, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if len(text) < 4096 { // fits into every pipe
		_, _ = pw.Write(text)
		return pr, pw.Close()
	}
	go func() {
		_, _ = pw.Write(text) // the reader may stop early
		_ = pw.Close()
	}()
	return pr, nil
}

func (c *call) onStat(ctx context.Context, name string, _ bool) (fs.FileInfo, error) {
	return c.h.files.Stat(path.Join("/", relative(ctx, name)), c.user)
}

func (c *call) onAccess(ctx context.Context, name string, mode interp.AccessMode) error {
	return c.h.files.May(path.Join("/", relative(ctx, name)), c.user, fs.FileMode(mode)&7) //nolint:gosec // three bits
}

func (c *call) onReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	return c.h.files.ReadDir(path.Join("/", relative(ctx, name)), c.user)
}

func relative(ctx context.Context, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(interp.HandlerCtx(ctx).Dir, name)
}

// fileWriter writes to a file that was opened by Create.
type fileWriter struct {
	h    *Host
	name string
}

func (w *fileWriter) Write(p []byte) (int, error) {
	if err := w.h.files.Append(w.name, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (*fileWriter) Read([]byte) (int, error) { return 0, errors.New("opened for writing") }
func (*fileWriter) Close() error             { return nil }
