package machines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gitlab.com/sluice-runners/sluice/test/e2e/golden"
)

// StateDir holds one directory for each world.
const StateDir = "/run/sluice-e2e"

// namePrefix marks every namespace and cgroup of ours.
const namePrefix = "sle2e-"

// CloudAddress is where a world's GitLab listens, seen from its machines.
const CloudAddress = cloudAddress

var worldName = regexp.MustCompile(`^[a-z0-9]{1,12}$`)

// Settings are what a world gives to each machine it makes.
type Settings struct {
	Persistent    bool   `json:"persistent"`     // outlives its maker until Down
	Program       string `json:"program"`        // the binary whose `supervise WORLD ID` keeps a machine on
	Runner        string `json:"runner"`         // installed as /usr/local/bin/gitlab-runner
	CLI           string `json:"cli"`            // installed as /usr/local/bin/sluice, for jobs that use it; "" = not there
	Sudoers       string `json:"sudoers"`        // what the login user fedora may do; "" = anything. ops may do anything always
	AuthorizedKey string `json:"authorized_key"` // for the users fedora and ops
	RunnerConfig  string `json:"runner_config"`  // config.toml; {{name}} is the machine's name
	RunnerID      int64  `json:"runner_id"`      // for people and generated configs
	RunnerToken   string `json:"runner_token"`
	GitLabToken   string `json:"gitlab_token"`
}

// World is one network with its machines.
type World struct {
	Name     string
	Settings Settings
	tree     golden.Tree
}

// Dir is the world's directory: settings, machines' records, logs, binaries, keys.
func (w *World) Dir() string { return filepath.Join(StateDir, w.Name) }

func (w *World) cloud() namespace { return namespace(namePrefix + w.Name) }

// Make makes an empty world with its network. A world of that name must not exist.
func Make(ctx context.Context, name string, tree golden.Tree, settings Settings) (*World, *Lease, error) {
	if !worldName.MatchString(name) {
		return nil, nil, fmt.Errorf("world %q: use up to 12 lower-case letters and digits", name)
	}
	w := &World{Name: name, Settings: settings, tree: tree}
	unlock, err := lockWorlds()
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if err := os.Mkdir(w.Dir(), 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, nil, fmt.Errorf("world %s stands already: take it down first", name)
		}
		return nil, nil, err
	}
	lease, err := takeLease(w.Dir())
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range []string{"machines", "logs", "bin"} {
		if err := os.MkdirAll(filepath.Join(w.Dir(), dir), 0o700); err != nil {
			return nil, nil, err
		}
	}
	if err := w.Save(); err != nil {
		return nil, nil, err
	}
	return w, lease, w.cloud().makeCloud(ctx)
}

type savedWorld struct {
	Settings Settings    `json:"settings"`
	Tree     golden.Tree `json:"tree"`
}

// Save writes the settings down, for machines made from now on.
func (w *World) Save() error {
	return writeJSON(filepath.Join(w.Dir(), "world.json"), savedWorld{w.Settings, w.tree})
}

// Open picks up a world that stands.
func Open(name string) (*World, error) {
	var saved savedWorld
	err := readJSON(filepath.Join(StateDir, name, "world.json"), &saved)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no world %q: bring it up first", name)
	}
	return &World{Name: name, Settings: saved.Settings, tree: saved.Tree}, err
}

// Down ends every machine and process of the world and removes all of it. It goes on
// after an error, and may be repeated.
func (w *World) Down(ctx context.Context) error {
	var failures []error
	records, err := w.records()
	failures = append(failures, err)
	for _, m := range records {
		failures = append(failures, w.destroy(ctx, m))
	}
	for _, service := range w.services() {
		service.Kill()
	}
	failures = append(failures, w.cloud().remove(ctx))
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("world %s: %w", w.Name, err)
	}
	return os.RemoveAll(w.Dir())
}

// Sweep takes down worlds whose maker died without doing it, and says which.
func Sweep(ctx context.Context) ([]string, error) {
	unlock, err := lockWorlds()
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, err := os.ReadDir(StateDir)
	var swept []string
	failures := []error{err}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		lease, err := takeLease(filepath.Join(StateDir, entry.Name()))
		if err != nil {
			continue // its maker lives
		}
		w, err := Open(entry.Name())
		if err != nil {
			w = &World{Name: entry.Name()} // died before it wrote its settings
		}
		if !w.Settings.Persistent {
			failures = append(failures, w.Down(ctx))
			swept = append(swept, entry.Name())
		}
		lease.Release()
	}
	return swept, errors.Join(failures...)
}

// SweepDisks removes the disks of worlds that are gone without a trace, as after a reboot
// of this host.
func SweepDisks(ctx context.Context, tree golden.Tree) error {
	unlock, err := lockWorlds()
	if err != nil {
		return err
	}
	defer unlock()
	disks, err := filepath.Glob(filepath.Join(tree.Pool, "machines", "*.i-*"))
	failures := []error{err}
	for _, disk := range disks {
		world, _, _ := strings.Cut(filepath.Base(disk), ".")
		if !fileExists(filepath.Join(StateDir, world)) {
			failures = append(failures, golden.DeleteSubvolume(ctx, disk))
		}
	}
	return errors.Join(failures...)
}
