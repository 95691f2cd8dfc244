//go:build ship

package ship_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	root    = "../.."
	image   = "localhost/sluice"
	version = "0.0.0-test"
)

// layouts are the two images as OCI layouts, by target.
var layouts = map[string]*layout{}

// names are their names in the storage of this run.
var names = map[string]string{"server": image + ":" + version, "ci": image + "/ci:" + version}

func TestMain(m *testing.M) {
	os.Exit(withImages(m))
}

// withImages builds the images into a storage of their own, which goes with the run.
func withImages(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice-ship-")
	if err != nil {
		return complain(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build(dir); err != nil {
		return complain(err)
	}
	return m.Run()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "the images cannot be built:", err)
	return 1
}

func build(dir string) error {
	context, err := filepath.Abs(root + "/dist/image")
	if err != nil {
		return err
	}
	if _, err := os.Stat(context); err != nil {
		return fmt.Errorf("there is no build context (%w): run `make ship`", err)
	}
	if err := newStorage(dir); err != nil {
		return err
	}
	if _, err := tool(root+"/deploy/docker/build", context, image, version); err != nil {
		return err
	}
	for target, name := range names {
		if layouts[target], err = export(name, filepath.Join(dir, target)); err != nil {
			return err
		}
	}
	return nil
}

// newStorage points buildah at an empty storage under dir.
func newStorage(dir string) error {
	conf := filepath.Join(dir, "storage.conf")
	text := fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", dir+"/graph", dir+"/run")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	return errors.Join(
		os.Setenv("CONTAINERS_STORAGE_CONF", conf),
		os.Setenv("STORAGE_DRIVER", "vfs"), os.Setenv("BUILDAH_ISOLATION", "chroot"))
}

// tool runs a program to its end and yields what it printed.
func tool(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, log.String())
	}
	return strings.TrimSpace(out.String()), nil
}

func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := tool(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
