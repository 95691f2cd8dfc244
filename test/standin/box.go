package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// waitDelay is how long output may dribble on after a command was ended.
const waitDelay = 100 * time.Millisecond

// box is where a job's steps run.
type box interface {
	// start makes the box ready; output goes to trace.
	start(ctx context.Context, trace io.Writer) error
	// run executes a shell script in it and waits. A script that ended otherwise than
	// with 0 is an *exec.ExitError; an ended ctx ends the wait.
	run(ctx context.Context, script string, trace io.Writer) error
	// remove takes the box away with all that still runs in it. It may be repeated.
	remove(ctx context.Context) error
}

func newBox(e entry, j *job) box {
	env := []string{"CI=true", "CI_JOB_ID=" + strconv.FormatInt(j.ID, 10)}
	for _, v := range j.Variables {
		env = append(env, v.Key+"="+v.Value)
	}
	if e.Executor == "shell" {
		return shell{env: env}
	}
	c := container{name: "runner-" + strconv.FormatInt(j.ID, 10), image: e.Image, network: e.Network, volumes: e.Volumes, env: env}
	if e.Executor == "docker" {
		c.name, c.labels = dockerName(e, j), dockerLabels(j)
	}
	return c
}

// container is a rootless podman container that only stays; steps are executed in it.
type container struct {
	name    string
	image   string
	network string
	volumes []string
	env     []string
	labels  []string
}

func (c container) start(ctx context.Context, trace io.Writer) error {
	args := []string{"run", "--detach", "--name", c.name, "--network", c.network, "--pull", "never"}
	for _, v := range c.volumes {
		args = append(args, "--volume", v)
	}
	for _, e := range c.env {
		args = append(args, "--env", e)
	}
	for _, l := range c.labels {
		args = append(args, "--label", l)
	}
	// The container outlives a runner that is killed, as a custom executor's does.
	out, err := podman(ctx, append(args, c.image, "sleep", "2000000")...).CombinedOutput()
	if err != nil {
		_, _ = trace.Write(out)
		return fmt.Errorf("podman run %s: %w: %s", c.name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (c container) run(ctx context.Context, script string, trace io.Writer) error {
	cmd := podman(ctx, "exec", "--interactive", c.name, "sh", "-e")
	cmd.Stdin = strings.NewReader(script)
	cmd.Stdout, cmd.Stderr = trace, trace
	return cmd.Run()
}

func (c container) remove(ctx context.Context) error {
	out, err := podman(ctx, "rm", "--force", "--ignore", "--time", "0", c.name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("podman rm %s: %w: %s", c.name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func podman(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "podman", args...) //nolint:gosec // a runner runs what jobs say
	cmd.Dir = "/"
	cmd.WaitDelay = waitDelay
	return cmd
}

// shell runs steps as processes of this host, as the shell executor does.
type shell struct{ env []string }

func (s shell) start(context.Context, io.Writer) error { return nil }

func (s shell) run(ctx context.Context, script string, trace io.Writer) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-e")
	cmd.Env = append(cmd.Environ(), s.env...)
	// A group of its own, so that an ended job takes its children along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = waitDelay
	cmd.Stdin = strings.NewReader(script)
	cmd.Stdout, cmd.Stderr = trace, trace
	return cmd.Run()
}

func (s shell) remove(context.Context) error { return nil }
