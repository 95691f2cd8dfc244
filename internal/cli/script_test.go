package cli_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"gitlab.com/sluice-runners/sluice/internal/cli"
	"gitlab.com/sluice-runners/sluice/internal/sim"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil { // the scripts mostly wait
		panic(err)
	}
	testscript.Main(m, map[string]func(){"sluice": program, "toycloud": toycloud})
}

// program is the command as server/main.go makes it.
func program() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.Main(context.Background(), cli.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Signals: signals, Now: time.Now, Version: "v0.0.0-test", UID: os.Getuid(),
	}))
}

// TestScripts runs what people type. Scripts whose name begins with world_
// have a small world behind them: a GitLab, VMs and a cloud, in this process.
// cases.md T66: the commands that run alone need no pipeline and no server.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: scripts(t),
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			if !strings.Contains(filepath.Base(env.WorkDir), "world_") {
				return nil
			}
			return startWorld(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": exitStatus, "busy": busy, "damage": damage, "fault": fault, "await": await, "interrupt": interrupt,
			"creates": creates, "deletes": deletes, "begin": begin, "ended": ended, "told": told,
			"address": address, "deliver": deliver, "listed": listed,
		},
		RequireExplicitExec: true,
	})
}

// scripts lists those to run. Under the race detector, which makes a world ten
// times as slow, only those that have most going on at a time; make product runs
// all of them.
func scripts(t *testing.T) []string {
	t.Helper()
	names := []string{"*"}
	if raceDetector {
		names = []string{"config", "usage", "demo", "world_door", "world_gitlab", "world_long_interrupt", "world_recreate", "world_restart", "world_server"}
	}
	var list []string
	for _, name := range names {
		files, err := filepath.Glob("testdata/script/" + name + ".txtar")
		if err != nil || len(files) == 0 {
			t.Fatalf("no script %s: %v", name, err)
		}
		list = append(list, files...)
	}
	return list
}

type worldKey struct{}

func startWorld(env *testscript.Env) error {
	o := sim.Options{Now: time.Now, VMs: 3, Jobs: true, MinJob: time.Second, MaxJob: 3 * time.Second, Fleet: "lab"}
	if strings.Contains(filepath.Base(env.WorkDir), "long_") {
		o.MinJob, o.MaxJob = 15*time.Second, 20*time.Second
	}
	w, err := sim.NewWorld(o)
	if err != nil {
		return err
	}
	env.Defer(w.Close)
	own := &running{commands: map[string]*exec.Cmd{}}
	env.Values[runningKey{}] = own
	env.Defer(func() {
		for _, cmd := range own.commands {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	env.Values[worldKey{}] = w
	cloud, err := serveCloud(w)
	if err != nil {
		return err
	}
	env.Defer(cloud.close)
	env.Setenv("TOYCLOUD", cloud.url)
	return writeConfig(env.WorkDir, w, cloud.url)
}
