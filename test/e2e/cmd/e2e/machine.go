package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

const machineUsage = "list WORLD | create WORLD [--image NAME] [--label KEY=VALUE]… NAME | " +
	"describe|delete|reboot|cut|on|hang|thaw|unplug|plug WORLD NAME-OR-ID"

func supervise(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: e2e supervise WORLD ID")
	}
	return machines.Supervise(ctx, args[0], args[1])
}

// machine works on one machine of a world and prints what it is as JSON.
func machine(ctx context.Context, args []string) error {
	if len(args) < 2 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[1], "-") {
		return errors.New("usage: e2e machine " + machineUsage)
	}
	verb, args := args[0], args[1:]
	w, err := machines.Open(args[0])
	if err != nil {
		return err
	}
	switch verb {
	case "create":
		return create(ctx, w, args[1:])
	case "list":
		all, err := w.List()
		return print(all, err)
	}
	if len(args) != 2 {
		return fmt.Errorf("usage: e2e machine %s WORLD NAME-OR-ID", verb)
	}
	m, err := find(w, args[1])
	if err != nil {
		return err
	}
	return act(ctx, w, m, verb)
}

func create(ctx context.Context, w *machines.World, args []string) error {
	flags := flag.NewFlagSet("create", flag.ContinueOnError)
	image := flags.String("image", "v1", "image name")
	labels := map[string]string{}
	flags.Func("label", "KEY=VALUE, may be repeated", func(text string) error {
		key, value, _ := strings.Cut(text, "=")
		labels[key] = value
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	m, err := w.Create(ctx, machines.Spec{Name: flags.Arg(0), Image: *image, Labels: labels})
	return print(m, err)
}

func act(ctx context.Context, w *machines.World, m *machines.Machine, verb string) error {
	switch verb {
	case "describe":
		return print(m, nil)
	case "delete":
		return w.Delete(ctx, m.ID)
	case "reboot":
		cmd, err := w.Inside(ctx, m, "systemctl", "reboot")
		if err != nil {
			return err
		}
		return cmd.Run()
	case "cut":
		return w.PowerCut(ctx, m)
	case "on":
		return w.PowerOn(m)
	case "hang", "thaw":
		return w.Hang(m, verb == "hang")
	case "unplug", "plug":
		return w.Partition(ctx, m, verb == "unplug")
	default:
		return errors.New("usage: e2e machine " + machineUsage)
	}
}

func find(w *machines.World, nameOrID string) (*machines.Machine, error) {
	all, err := w.List()
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.Name == nameOrID || m.ID == nameOrID {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", machines.ErrNotFound, nameOrID)
}

func print(value any, err error) error {
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// login becomes an ssh client in the world's network, with the world's key and the
// machine's own host key.
func login(_ context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: e2e ssh WORLD [USER@]NAME [COMMAND…]")
	}
	w, err := machines.Open(args[0])
	if err != nil {
		return err
	}
	user, name, given := strings.Cut(args[1], "@")
	if !given {
		user, name = stage.Fedora, args[1]
	}
	m, err := find(w, name)
	if err != nil {
		return err
	}
	known := filepath.Join(w.Dir(), "known_hosts")
	var lines strings.Builder
	for _, key := range m.HostKeys {
		_, _ = fmt.Fprintf(&lines, "%s %s\n", m.Address, key)
	}
	if err := os.WriteFile(known, []byte(lines.String()), 0o600); err != nil {
		return err
	}
	argv := w.InCloud(append([]string{
		"ssh", "-q", "-i", filepath.Join(w.Dir(), "id_ed25519"), "-o", "UserKnownHostsFile=" + known,
		"-o", "StrictHostKeyChecking=yes", "-l", user, m.Address,
	}, args[2:]...)...)
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, argv, os.Environ()) //nolint:gosec // an ssh client, as asked
}
