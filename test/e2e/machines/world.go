package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

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
	Sudoers       string `json:"sudoers"`        // a sudoers file for the login user; "" = may do anything
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

// Lease is the maker's hold on a world that is not persistent. When the process ends,
// however it ends, the hold is gone and the world is anybody's to sweep.
type Lease struct{ file *os.File }

// Release gives the hold back.
func (l *Lease) Release() { _ = l.file.Close() }

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

// takeLease holds the world for this process; syscall.EWOULDBLOCK if another does.
func takeLease(dir string) (*Lease, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lease"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // our own directory
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Lease{file}, nil
}

// lockWorlds serializes the making and sweeping of worlds over all processes.
func lockWorlds() (unlock func(), err error) {
	if err := os.MkdirAll(StateDir, 0o700); err != nil {
		return nil, err
	}
	return lockFile(filepath.Join(StateDir, "lock"))
}

// lock serializes changes to the world's machines over all processes.
func (w *World) lock() (unlock func(), err error) {
	return lockFile(filepath.Join(w.Dir(), "lock"))
}

func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // our own directory
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
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

// Start runs a program inside the cloud's network until the world goes down; its output
// goes to logs/NAME.log.
func (w *World) Start(name string, argv ...string) (Handle, error) {
	log, err := os.OpenFile(filepath.Join(w.Dir(), "logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Handle{}, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("nsenter", w.InCloud(argv...)[1:]...) //nolint:gosec,noctx // outlives the caller on purpose
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Handle{}, err
	}
	handle := HandleOf(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }()
	return handle, writeJSON(filepath.Join(w.Dir(), "service-"+name+".json"), handle)
}

// InCloud yields the command line that runs argv inside the cloud's network, and only
// that: files, processes and users stay the host's.
func (w *World) InCloud(argv ...string) []string {
	return append([]string{"nsenter", "--net=" + w.cloud().path(), "--"}, argv...)
}

// DialContext connects from inside the cloud's network; address must be IP:port.
func (w *World) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return w.cloud().dial(ctx, network, address)
}

func (w *World) services() []Handle {
	files, _ := filepath.Glob(filepath.Join(w.Dir(), "service-*.json"))
	var handles []Handle
	for _, file := range files {
		var handle Handle
		if readJSON(file, &handle) == nil {
			handles = append(handles, handle)
		}
	}
	return handles
}

func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func readJSON(path string, value any) error {
	content, err := os.ReadFile(path) //nolint:gosec // our own directory
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, value); err != nil {
		return fmt.Errorf("%s: %w", strings.TrimPrefix(path, StateDir+"/"), err)
	}
	return nil
}
