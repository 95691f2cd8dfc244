//go:build ship

package ship_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// container runs an image as Kubernetes would under deploy/kustomize: a root
// file system that cannot be written, no capability, no new privileges, a pid
// namespace of its own, /tmp in memory. Its network is this machine's loopback.
type container struct {
	t      *testing.T
	target string
	args   []string          // after the entrypoint, or instead of the command
	env    []string          // beside the image's
	mounts map[string]string // from here, by path inside; read-only but for /var/lib/sluice
	id     string
	dir    string
	cmd    *exec.Cmd
	out    locked
	log    locked
}

// locked is a buffer that is read while it is written.
type locked struct {
	sync.Mutex
	bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(p)
}

func (l *locked) String() string {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.String()
}

// crun cannot work under a mixed cgroup hierarchy; a mount namespace with a plain
// one, where nothing is limited, shows it what it knows.
const plainCgroups = `umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"`

// start runs the container in the background; it is ended with the test.
func (c *container) start() *container {
	t := c.t
	t.Helper()
	c.dir = t.TempDir()
	c.id = "sluice-" + filepath.Base(filepath.Dir(c.dir)) + "-" + filepath.Base(c.dir)
	images(t)
	work := must(t, "buildah", "from", "--arch", "amd64", names[c.target])
	t.Cleanup(func() { must(t, "buildah", "rm", work) })
	c.bundle(must(t, "buildah", "mount", work))
	c.cmd = exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", plainCgroups, "sh",
		"crun", "--root", c.dir+"/state", "--cgroup-manager=disabled", "run", "--bundle", c.dir, c.id)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			_, _ = tool("crun", "--root", c.dir+"/state", "delete", "--force", c.id)
			_ = c.cmd.Wait()
		}
	})
	return c
}

// wait yields the exit status.
func (c *container) wait() int {
	c.t.Helper()
	limit := time.AfterFunc(3*time.Minute, func() { _, _ = tool("crun", "--root", c.dir+"/state", "kill", c.id, "KILL") })
	defer limit.Stop()
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

// run runs it to its end and yields what it printed.
func (c *container) run() (out, log string, status int) {
	c.t.Helper()
	status = c.start().wait()
	return c.out.String(), c.log.String(), status
}

// await polls until the log holds text.
func (c *container) await(text string) string {
	c.t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); <-time.After(20 * time.Millisecond) {
		if log := c.log.String(); strings.Contains(log, text) {
			return log
		}
	}
	c.t.Fatalf("it never said %q:\n%s", text, c.log.String())
	return ""
}

// bundle writes the OCI runtime configuration.
func (c *container) bundle(rootfs string) {
	image := images(c.t)[c.target].images["linux/amd64"].Config
	args := c.args
	if len(image.Entrypoint) > 0 {
		args = append(image.Entrypoint[:1:1], args...)
	}
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755"}},
		{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "nodev", "mode=1777"}},
	}
	for inside, here := range c.mounts {
		options := []string{"bind", "ro"}
		if inside == "/var/lib/sluice" {
			options = []string{"bind", "rw"}
		}
		mounts = append(mounts, object{"destination": inside, "type": "bind", "source": here, "options": options})
	}
	namespaces := []object{}
	for _, kind := range []string{"pid", "mount", "ipc", "uts"} {
		namespaces = append(namespaces, object{"type": kind})
	}
	raw, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": 65532, "gid": 65532}, "args": args, "cwd": image.WorkingDir,
			"env": append(image.Env, c.env...), "capabilities": object{}, "noNewPrivileges": true,
		},
		"root":   object{"path": rootfs, "readonly": true},
		"mounts": mounts,
		"linux":  object{"namespaces": namespaces},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, "config.json"), raw, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

type object map[string]any

// writable is a directory that the image's user may write, as a volume with
// fsGroup is.
func writable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chown(dir, 65532, 65532); err != nil {
		t.Fatal(err)
	}
	return dir
}

// files writes what the image's user reads, and makes the way to it passable.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-ship-files-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // read by another user
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // read by another user
		t.Fatal(fmt.Errorf("make %s passable: %w", dir, err))
	}
	return dir
}
