package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/golden"
	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// standing is the world that people use; tests make their own.
const standing = "up"

func setup(ctx context.Context, _ []string) error {
	if err := stage.CheckHost(ctx, os.Stderr); err != nil {
		return err
	}
	tree, err := golden.Ensure(ctx, os.Stderr)
	if err == nil {
		_, _ = fmt.Fprintf(os.Stderr, "golden tree: %s\n", tree.Root)
	}
	return err
}

func up(ctx context.Context, _ []string) error {
	if err := stage.CheckHost(ctx, os.Stderr); err != nil {
		return err
	}
	if _, err := machines.Open(standing); err == nil {
		return errors.New("it stands already; `e2e down` ends it")
	}
	s, err := stage.Set(ctx, stage.Options{Name: standing, Persistent: true, Log: os.Stderr})
	if err != nil {
		return err
	}
	began := time.Now()
	for _, name := range []string{"runner-01", "runner-02"} {
		if err := standUp(ctx, s, name); err != nil {
			return errors.Join(err, s.Strike(context.WithoutCancel(ctx)))
		}
	}
	if err := s.GitLab.AwaitManagers(ctx, 2); err != nil {
		return errors.Join(err, s.Strike(context.WithoutCancel(ctx)))
	}
	_, _ = fmt.Fprintf(os.Stderr, "two machines up in %s\n", time.Since(began).Round(time.Millisecond))
	guide, err := s.Guide()
	if err != nil {
		return err
	}
	_, err = fmt.Print(guide)
	return err
}

func standUp(ctx context.Context, s *stage.Stage, name string) error {
	m, err := s.World.Create(ctx, machines.Spec{Name: name, Image: "v1"})
	if err != nil {
		return err
	}
	shell, err := s.Login(ctx, m, stage.Fedora)
	if err == nil {
		shell.Close()
	}
	return err
}

func down(ctx context.Context, _ []string) error {
	swept, err := machines.Sweep(ctx)
	for _, name := range swept {
		_, _ = fmt.Fprintf(os.Stderr, "swept world %s, whose maker is gone\n", name)
	}
	w, openErr := machines.Open(standing)
	if openErr != nil {
		_, _ = fmt.Fprintln(os.Stderr, "no world stands")
		return err
	}
	return errors.Join(err, w.Down(ctx))
}
