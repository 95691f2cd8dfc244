//go:build component

package component_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// bin holds the binary that the jobs run, tool runs gitlab-ci-local.
var bin, tool string

func TestMain(m *testing.M) {
	status, err := prepared(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func prepared(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "sluice-component-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin = dir
	build := exec.CommandContext(context.Background(), "go", "build", "-buildvcs=false", "-o", filepath.Join(bin, "sluice"), "../../server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("building sluice: %w\n%s", err, out)
	}
	tool, err = filepath.Abs("../../.ci/gitlab-ci-local")
	if err != nil {
		return 1, err
	}
	if out, err := exec.CommandContext(context.Background(), tool, "--version").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("gitlab-ci-local does not run (`.ci/component-tool` brings it): %w\n%s", err, out)
	}
	return m.Run(), nil
}

// project is a GitLab project with the component in it and a pipeline that
// includes it.
type project struct {
	t    *testing.T
	dir  string
	home string
}

// newProject makes a project whose .gitlab-ci.yml is pipeline.
func newProject(t *testing.T, pipeline string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), home: t.TempDir()}
	template, err := os.ReadFile("../../templates/recreate.yml")
	if err != nil {
		t.Fatal(err)
	}
	p.write("templates/recreate.yml", string(template))
	p.write(".gitlab-ci.yml", pipeline)
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", "main"},
		{"add", "--all"},
		{"-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "A pipeline"},
		{"remote", "add", "origin", "git@gitlab.example.com:acme/runners.git"},
		{"update-ref", "refs/remotes/origin/main", "HEAD"},
		{"remote", "set-head", "origin", "main"},
	} {
		p.git(args...)
	}
	return p
}

func (p *project) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) git(args ...string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "git", args...)
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// pipeline is what a run came to.
type pipeline struct {
	t      *testing.T
	dir    string
	output string
	ended  map[string]string // job → PASS, WARN or FAIL
}

// result is a line of the summary. The exit status of gitlab-ci-local says
// nothing: it is 0 whenever a failed job carries an allow_failure map.
var result = regexp.MustCompile(`(?m)^ ?(PASS|WARN|FAIL) +(\S+)(?: +pre_script)? *$`)

// colours are what the summary is painted with.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// run runs the pipeline's jobs, and yields what became of them.
func (p *project) run(variables map[string]string) *pipeline {
	p.t.Helper()
	args := []string{"--force-shell-executor", "--json-schema-validation=false"} // one test looks at the schema
	args = append(args, "--variable", "GITLAB_CI=true")                          // which the tool says is false
	for name, value := range variables {
		args = append(args, "--variable", name+"="+value)
	}
	out := p.tool(args...)
	found := &pipeline{t: p.t, dir: p.dir, output: colours.ReplaceAllString(out, ""), ended: map[string]string{}}
	for _, line := range result.FindAllStringSubmatch(found.output, -1) {
		found.ended[line[2]] = line[1]
	}
	return found
}

// tool runs gitlab-ci-local.
func (p *project) tool(args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + p.home, "TMPDIR=" + os.TempDir()}
	out, err := cmd.CombinedOutput()
	if _, status := errors.AsType[*exec.ExitError](err); err != nil && !status {
		p.t.Fatalf("gitlab-ci-local: %v\n%s", err, out)
	}
	p.t.Logf("gitlab-ci-local:\n%s", out)
	return string(out)
}

// want compares how a job ended.
func (r *pipeline) want(job, word string) {
	r.t.Helper()
	if got := r.ended[job]; got != word {
		r.t.Errorf("job %s: %q, want %s", job, got, word)
	}
}

// log is a job's log, as it was written.
func (r *pipeline) log(job string) string {
	r.t.Helper()
	return r.read(filepath.Join(".gitlab-ci-local/output", job+".log"))
}

// artifact is a file that a job left.
func (r *pipeline) artifact(job, name string) string {
	r.t.Helper()
	return r.read(filepath.Join(".gitlab-ci-local/artifacts", job, "sluice", job, name))
}

func (r *pipeline) read(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Error(err)
	}
	return string(text)
}

// says wants texts in a job's log.
func (r *pipeline) says(job string, texts ...string) {
	r.t.Helper()
	log := r.log(job)
	for _, text := range texts {
		if !strings.Contains(log, text) {
			r.t.Errorf("the log of %s does not say %q:\n%s", job, text, log)
		}
	}
}
