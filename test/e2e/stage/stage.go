// Package stage sets the scene of an end-to-end test: a world of machines, the GitLab
// they know, the keys and the programs, built from this clone.
//
// It must not know what is played on it: scenarios and the sluice binary's command line
// are the tests' business.
package stage

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/test/e2e/golden"
	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
)

// GitLabURL is the world's GitLab, seen from its machines and from [machines.World.InCloud].
const GitLabURL = "http://" + machines.CloudAddress

// Stage is a world with its GitLab.
type Stage struct {
	World  *machines.World
	GitLab *GitLab
	lease  *machines.Lease
	bin    string
}

// Options are what a stage is made from.
type Options struct {
	Name       string
	Persistent bool
	Programs   string    // a directory with the programs; "" = build them into the world's bin
	Log        io.Writer // progress, for people
}

// Set sweeps what dead runs left, then makes the stage. It needs root.
func Set(ctx context.Context, o Options) (*Stage, error) {
	swept, err := machines.Sweep(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range swept {
		_, _ = fmt.Fprintf(o.Log, "swept world %s, whose maker is gone\n", name)
	}
	tree, err := golden.Ensure(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	if err := machines.SweepDisks(ctx, tree); err != nil {
		return nil, err
	}
	world, lease, err := machines.Make(ctx, o.Name, tree, machines.Settings{Persistent: o.Persistent})
	if err != nil {
		return nil, err
	}
	s := &Stage{World: world, GitLab: newGitLab(world), lease: lease, bin: o.Programs}
	if err := s.furnish(ctx); err != nil {
		_ = s.Strike(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

// Strike takes everything down.
func (s *Stage) Strike(ctx context.Context) error {
	err := s.World.Down(ctx)
	s.lease.Release()
	return err
}

func (s *Stage) furnish(ctx context.Context) error {
	if s.bin == "" {
		s.bin = s.Path("bin")
		if err := BuildPrograms(ctx, s.bin); err != nil {
			return err
		}
	}
	key, err := s.makeKey(ctx)
	if err != nil {
		return err
	}
	set := &s.World.Settings
	set.Program, set.Runner = s.Program("e2e"), s.Program("gitlab-runner")
	set.AuthorizedKey = key
	if set.Sudoers, err = sudoers(ctx); err != nil {
		return err
	}
	set.RunnerID, set.RunnerToken = simgitlab.DefaultRunnerID, simgitlab.DefaultRunnerToken
	set.GitLabToken = simgitlab.DefaultUserToken
	set.RunnerConfig = runnerConfig
	if err := s.World.Save(); err != nil {
		return err
	}
	if _, err := s.World.Start("gitlab", s.Program("gitlab"), "-listen", machines.CloudAddress+":80"); err != nil {
		return err
	}
	return s.GitLab.awaitUp(ctx)
}

// runnerConfig is a machine's config.toml; it knows the token all machines share.
const runnerConfig = `concurrent = 1
check_interval = 1

[[runners]]
  name = "{{name}}"
  url = "` + GitLabURL + `"
  id = 4711
  token = "` + simgitlab.DefaultRunnerToken + `"
  executor = "custom"
`

// Path yields a path in the world's directory.
func (s *Stage) Path(elements ...string) string {
	return filepath.Join(append([]string{s.World.Dir()}, elements...)...)
}

// Program yields the path of one of the programs: sluice, e2e, gitlab, gitlab-runner.
func (s *Stage) Program(name string) string { return filepath.Join(s.bin, name) }

// BuildPrograms builds this clone's programs into dir.
func BuildPrograms(ctx context.Context, dir string) error {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return err
	}
	for name, pkg := range map[string]string{
		"gitlab-runner": "./test/standin", "gitlab": "./test/e2e/gitlab", "e2e": "./test/e2e/cmd/e2e",
		"sluice": "./server",
	} {
		if sources, _ := filepath.Glob(filepath.Join(root, pkg, "*.go")); len(sources) == 0 {
			continue
		}
		//nolint:gosec // our own packages
		build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, name), pkg)
		build.Dir = root
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

// ModuleRoot yields the clone's directory.
func ModuleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// sudoers yields the project's file for hosts, "" while there is none.
func sudoers(ctx context.Context) (string, error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "sudoers", "*"))
	for _, file := range files {
		if !strings.Contains(filepath.Base(file), ".") {
			return file, nil
		}
	}
	return "", err
}

// makeKey makes the world's login key and yields its public half.
func (s *Stage) makeKey(ctx context.Context) (string, error) {
	file := s.Path("id_ed25519")
	//nolint:gosec // our own path
	out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "sluice-e2e", "-f", file).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make the login key: %w: %s", err, out)
	}
	public, err := os.ReadFile(file + ".pub")
	return string(public), err
}

// client speaks HTTP from inside the cloud's network.
func client(w *machines.World) *http.Client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return w.DialContext(ctx, network, address)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: 10 * time.Second}
}
