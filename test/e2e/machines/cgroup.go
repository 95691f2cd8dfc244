package machines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroupRoots are the hierarchies a machine gets a group of its own in: the mixed
// layout's two, or the only one.
var cgroupRoots = []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup"}

// group is a machine's cgroup, by its name in every hierarchy.
type group string

// v2 yields the group's directory in the unified hierarchy.
func (g group) v2() string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return filepath.Join("/sys/fs/cgroup", string(g))
	}
	return filepath.Join("/sys/fs/cgroup/unified", string(g))
}

// populated says whether any process is in the group.
func (g group) populated() bool {
	events, err := os.ReadFile(filepath.Join(g.v2(), "cgroup.events"))
	return err == nil && strings.Contains(string(events), "populated 1")
}

// freeze stops every process of the group in its tracks, or lets them go on: to the
// network a frozen machine looks hung.
func (g group) freeze(frozen bool) error {
	value := "0"
	if frozen {
		value = "1"
	}
	return os.WriteFile(filepath.Join(g.v2(), "cgroup.freeze"), []byte(value), 0o600)
}

// kill ends every process of the group at once and waits until it is empty.
func (g group) kill(ctx context.Context) error {
	err := poll(ctx, 10*time.Second, 10*time.Millisecond, func() bool {
		if !g.populated() {
			return true
		}
		_ = os.WriteFile(filepath.Join(g.v2(), "cgroup.kill"), []byte("1"), 0o600)
		return false
	})
	if err != nil {
		return fmt.Errorf("end the processes of %s: %w", g, err)
	}
	return nil
}

// remove takes the empty group away, children first.
func (g group) remove() error {
	for _, root := range cgroupRoots {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(root, string(g)), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs)
		for _, dir := range dirs {
			if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove cgroup %s: %w", dir, err)
			}
		}
	}
	return nil
}

// init yields the pid, as this host counts, of the machine's process 1; 0 if there is
// none (yet).
func (g group) init() int {
	found := 0
	_ = filepath.WalkDir(g.v2(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "cgroup.procs" {
			return nil
		}
		procs, _ := os.ReadFile(path) //nolint:gosec // below /sys/fs/cgroup
		for field := range strings.FieldsSeq(string(procs)) {
			if pid, err := strconv.Atoi(field); err == nil && innerPID(pid) == "1" {
				found = pid
				return fs.SkipAll
			}
		}
		return nil
	})
	return found
}

// innerPID yields a process's pid in its own namespace.
func innerPID(pid int) string {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(rest)
			return fields[len(fields)-1]
		}
	}
	return ""
}

// poll asks until done says yes, ctx ends or the limit has passed.
func poll(ctx context.Context, limit, every time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}
