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
	"sync"
	"testing"
	"time"
)

const (
	root    = "../.."
	image   = "localhost/sluice"
	version = "0.0.0-test"
)

// names are the images' names in the storage of this run.
var names = map[string]string{"server": image + ":" + version, "ci": image + "/ci:" + version}

// storage is a directory that goes with the run.
var storage string

func TestMain(m *testing.M) {
	os.Exit(withStorage(m))
}

func withStorage(m *testing.M) int {
	var err error
	if storage, err = os.MkdirTemp("", "sluice-ship-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(storage) }()
	return m.Run()
}

var buildOnce = sync.OnceValues(func() (map[string]*layout, error) { return build(storage) })

// images are the two images as OCI layouts, by target; built at the first call.
func images(t *testing.T) map[string]*layout {
	t.Helper()
	layouts, err := buildOnce()
	if err != nil {
		t.Fatalf("the images cannot be built: %v", err)
	}
	return layouts
}

func build(dir string) (map[string]*layout, error) {
	context, err := filepath.Abs(root + "/dist/image")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(context); err != nil {
		return nil, fmt.Errorf("there is no build context (%w): run `make ship`", err)
	}
	if err := newStorage(dir); err != nil {
		return nil, err
	}
	if _, err := tool(root+"/deploy/docker/build", context, image, version); err != nil {
		return nil, err
	}
	layouts := map[string]*layout{}
	for target, name := range names {
		if layouts[target], err = export(name, filepath.Join(dir, target)); err != nil {
			return nil, err
		}
	}
	return layouts, nil
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
