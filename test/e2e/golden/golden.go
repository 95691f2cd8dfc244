// Package golden makes the file system that every test machine is a snapshot of:
// a Debian trixie tree with Fedora's unit settings, a rootless podman and the jobs'
// image, in a btrfs pool on a sparse file that outlives the clone.
//
// It must not know machines, worlds or GitLab.
package golden

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed all:tree packages.txt *.sh
var recipe embed.FS

// Tree is a golden tree in its pool.
type Tree struct {
	Pool string // the mounted btrfs file system
	Root string // the golden subvolume inside it; never written to
}

// Ensure yields the golden tree of this recipe, building what is missing: about two
// minutes the first time, milliseconds later. It needs root, and network for the
// first build. Progress goes to log. Several processes may call it at once.
func Ensure(ctx context.Context, log io.Writer) (Tree, error) {
	unlock, err := lockPool()
	if err != nil {
		return Tree{}, err
	}
	defer unlock()
	pool, err := mountPool(ctx)
	if err != nil {
		return Tree{}, err
	}
	b := builder{ctx: ctx, pool: pool, log: log}
	tree, err := b.tree()
	if err != nil {
		return Tree{}, err
	}
	return tree, b.prune(tree)
}

type builder struct {
	ctx     context.Context
	pool    string
	log     io.Writer
	scripts string
}

func (b *builder) tree() (Tree, error) {
	base := filepath.Join(b.pool, "base-"+digest("packages.txt", "base.sh"))
	root := filepath.Join(b.pool, "golden-"+digest("."))
	tree := Tree{Pool: b.pool, Root: root}
	if exists(root) {
		return tree, nil
	}
	scripts, err := os.MkdirTemp("", "sluice-e2e-golden-")
	if err != nil {
		return Tree{}, err
	}
	defer func() { _ = os.RemoveAll(scripts) }()
	b.scripts = scripts
	if err := unpack(scripts); err != nil {
		return Tree{}, err
	}
	if err := b.build(base, b.makeBase); err != nil {
		return Tree{}, err
	}
	return tree, b.build(root, func(tmp string) error { return b.makeGolden(base, tmp) })
}

// build makes a subvolume under a temporary name and renames it when it is whole, so
// that a build cut short leaves nothing that looks ready.
func (b *builder) build(path string, make func(tmp string) error) error {
	if exists(path) {
		return nil
	}
	tmp := filepath.Join(b.pool, "unfinished-"+filepath.Base(path))
	if exists(tmp) {
		if err := DeleteSubvolume(b.ctx, tmp); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(b.log, "building %s\n", path)
	if err := make(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func (b *builder) makeBase(tmp string) error {
	if err := b.run("btrfs", "subvolume", "create", tmp); err != nil {
		return err
	}
	return b.run(filepath.Join(b.scripts, "base.sh"), tmp, filepath.Join(b.scripts, "packages.txt"))
}

func (b *builder) makeGolden(base, tmp string) error {
	if err := b.run("btrfs", "subvolume", "snapshot", base, tmp); err != nil {
		return err
	}
	if err := b.run(filepath.Join(b.scripts, "customize.sh"), tmp, filepath.Join(b.scripts, "tree")); err != nil {
		return err
	}
	return b.run(filepath.Join(b.scripts, "import-image.sh"), tmp)
}

func (b *builder) run(name string, args ...string) error {
	cmd := exec.CommandContext(b.ctx, name, args...) //nolint:gosec // our own scripts and arguments
	cmd.Stdout, cmd.Stderr = b.log, b.log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("golden tree: %s: %w", strings.Join(append([]string{filepath.Base(name)}, args...), " "), err)
	}
	return nil
}

// digest names a state of the recipe: the files under the given names.
func digest(names ...string) string {
	sum := sha256.New()
	for _, name := range names {
		_ = fs.WalkDir(recipe, name, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := recipe.ReadFile(path)
			_, _ = fmt.Fprintf(sum, "%s %d\n", path, len(content))
			_, _ = sum.Write(content)
			return err
		})
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// unpack writes the recipe out. Embedding forgets modes: scripts get theirs back.
func unpack(dir string) error {
	return fs.WalkDir(recipe, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, path)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755) //nolint:gosec // becomes part of a file system for all
		}
		content, err := recipe.ReadFile(path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(string(content), "#!") {
			mode = 0o755
		}
		return os.WriteFile(target, content, mode)
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
