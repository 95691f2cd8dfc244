package golden

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
)

// CacheDir is where the pool lives: outside every clone, because making the tree takes
// minutes. SLUICE_E2E_CACHE moves it.
func CacheDir() string {
	if dir := os.Getenv("SLUICE_E2E_CACHE"); dir != "" {
		return dir
	}
	return "/var/cache/sluice-e2e"
}

// poolSize is the sparse file's size; a machine costs some megabytes of it.
const poolSize = 20 << 30

// lockPool serializes builds and mounts over all processes of this host.
func lockPool() (unlock func(), err error) {
	if err := os.MkdirAll(CacheDir(), 0o755); err != nil { //nolint:gosec // a cache, nothing secret
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(CacheDir(), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock the pool of test machines: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

// mountPool mounts the pool, making it first where there is none.
func mountPool(ctx context.Context) (string, error) {
	file := filepath.Join(CacheDir(), "pool.btrfs")
	dir := filepath.Join(CacheDir(), "pool")
	if mounted(dir) {
		return dir, nil
	}
	if !exists(file) {
		if err := makePool(ctx, file); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, command(ctx, "mount", "-o", "loop,noatime", file, dir)
}

// keepUnused is how long a golden tree of another recipe stays after its last use.
const keepUnused = 7 * 24 * time.Hour

// prune marks the tree as used and removes those that nobody has used for long.
func (b *builder) prune(tree Tree) error {
	now := time.Now()
	if err := os.Chtimes(tree.Root, now, now); err != nil {
		return err
	}
	others, err := filepath.Glob(filepath.Join(b.pool, "golden-*"))
	if err != nil {
		return err
	}
	for _, other := range others {
		info, err := os.Stat(other)
		if err != nil || now.Sub(info.ModTime()) < keepUnused {
			continue
		}
		if err := DeleteSubvolume(b.ctx, other); err != nil {
			return err
		}
	}
	return nil
}

func makePool(ctx context.Context, file string) error {
	tmp := file + ".new"
	if err := os.WriteFile(tmp, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(tmp, poolSize); err != nil {
		return err
	}
	if err := command(ctx, "mkfs.btrfs", "-q", "-f", tmp); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}

func mounted(dir string) bool {
	table, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && strings.Contains(string(table), " "+dir+" ")
}

// Snapshot makes a writable copy of the tree at path, in milliseconds.
func (t Tree) Snapshot(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return command(ctx, "btrfs", "subvolume", "snapshot", t.Root, path)
}

// DeleteSubvolume removes a subvolume and those nested in it, innermost first. One
// that is not there is fine.
func DeleteSubvolume(ctx context.Context, path string) error {
	if !exists(path) {
		return nil
	}
	out, err := exec.CommandContext(ctx, "btrfs", "subvolume", "list", "-o", path).Output() //nolint:gosec // our own path
	if err != nil {
		return fmt.Errorf("list subvolumes of %s: %w", path, err)
	}
	var nested []string
	for line := range strings.Lines(string(out)) {
		_, inner, found := strings.Cut(strings.TrimSpace(line), filepath.Base(path)+"/")
		if found {
			nested = append(nested, filepath.Join(path, inner))
		}
	}
	sort.Slice(nested, func(i, j int) bool { return len(nested[i]) > len(nested[j]) })
	for _, inner := range append(nested, path) {
		if err := command(ctx, "btrfs", "subvolume", "delete", inner); err != nil {
			return err
		}
	}
	return nil
}

func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput() //nolint:gosec // our own arguments
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
