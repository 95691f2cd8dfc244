package main

import (
	"context"
	"errors"
)

func setup(ctx context.Context, _ []string) error { return errors.New("later") }
func up(ctx context.Context, _ []string) error    { return errors.New("later") }
func down(ctx context.Context, _ []string) error  { return errors.New("later") }
