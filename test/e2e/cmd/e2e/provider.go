package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
)

// The exit codes of the exec provider's protocol (docs/providers/exec.md).
const (
	exitConflict    = 4
	exitUnavailable = 5
	exitNoImage     = 8
)

// ask is what Sluice hands to a provider command on stdin.
type ask struct {
	Verb      string `json:"verb"`
	VM        string `json:"vm"`
	Instance  string `json:"instance"`
	Image     string `json:"image"`
	Operation string `json:"operation"`
}

// instance is a machine as the protocol spells it.
type instance struct {
	ID        string            `json:"id"`
	VM        string            `json:"vm"`
	Presence  string            `json:"presence"`
	Ready     bool              `json:"ready"`
	Address   string            `json:"address"`
	HostKeys  []string          `json:"host_keys,omitempty"`
	Image     string            `json:"image"`
	Labels    map[string]string `json:"labels,omitempty"`
	CreatedAt time.Time         `json:"created_at"`
	Detail    string            `json:"detail"`
}

// operationLabel is how an instance tells which create made it.
const operationLabel = "sluice-operation"

// provider is the command behind every verb of the exec provider: a world's cloud as a
// user's own scripts would wrap theirs.
func provider(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: e2e provider WORLD, with a request on stdin")
	}
	w, err := machines.Open(args[0])
	if err != nil {
		return err
	}
	var request ask
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	visit := machines.Visit{At: time.Now(), Verb: request.Verb, VM: request.VM, Instance: request.Instance}
	if request.Verb == "delete" {
		visit.Runner = runnerState(ctx, w, request.Instance)
	}
	answer, err := serve(ctx, w, visit, request)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		_ = print(map[string]string{"error": err.Error()}, nil)
		os.Exit(exitCode(err))
	}
	return print(answer, nil)
}

// refusal is an error with the exit code that says its kind.
type refusal struct {
	code int
	text string
}

func (r refusal) Error() string { return r.text }

func exitCode(err error) int {
	var r refusal
	switch {
	case errors.As(err, &r):
		return r.code
	case errors.Is(err, machines.ErrNameTaken):
		return exitConflict
	default:
		return exitUnavailable
	}
}

// serve keeps the visitors' book around the call.
func serve(ctx context.Context, w *machines.World, visit machines.Visit, r ask) (any, error) {
	if err := w.Record(visit); err != nil {
		return nil, err
	}
	answer, err := answer(ctx, w, r)
	visit.At, visit.Ended = time.Now(), true
	if err != nil {
		visit.Error = err.Error()
	}
	return answer, errors.Join(err, w.Record(visit))
}

func answer(ctx context.Context, w *machines.World, r ask) (any, error) {
	switch r.Verb {
	case "list":
		return instances(w, func(*machines.Machine) bool { return true })
	case "describe":
		return instances(w, func(m *machines.Machine) bool { return m.Name == r.VM })
	case "prepare", "check":
		return prepare(ctx, w, r)
	case "create":
		return order(ctx, w, r)
	case "delete":
		return map[string]any{}, remove(ctx, w, r)
	case "remains":
		left, err := w.Remains(r.Instance)
		return map[string]any{"remains": left}, err
	default:
		return nil, fmt.Errorf("there is no verb %q", r.Verb)
	}
}

func instances(w *machines.World, wanted func(*machines.Machine) bool) (any, error) {
	all, err := w.List()
	if err != nil {
		return nil, err
	}
	list := []instance{}
	for _, m := range all {
		if wanted(m) {
			list = append(list, describe(m))
		}
	}
	return map[string]any{"instances": list}, nil
}

func describe(m *machines.Machine) instance {
	presence := map[machines.State]string{
		machines.StateRunning: "running", machines.StateOff: "off", machines.StateStarting: "other",
	}[m.State]
	return instance{
		ID: m.ID, VM: m.Name, Presence: presence, Ready: m.State == machines.StateRunning,
		Address: m.Address, HostKeys: m.HostKeys, Image: m.Image, Labels: m.Labels,
		CreatedAt: m.CreatedAt, Detail: strings.ToUpper(string(m.State)),
	}
}

func prepare(ctx context.Context, w *machines.World, r ask) (any, error) {
	weather, err := w.Weather()
	if err != nil {
		return nil, err
	}
	image := r.Image
	if image == "" {
		image = weather.Images[0]
	}
	if !slices.Contains(weather.Images, image) {
		return nil, refusal{exitNoImage, fmt.Sprintf("there is no image %q; there are %s", image, strings.Join(weather.Images, ", "))}
	}
	if r.Verb == "check" {
		return map[string]any{}, hold(ctx, weather.CheckDelay)
	}
	return map[string]any{"image": image}, nil
}

// order makes a machine for an operation.
func order(ctx context.Context, w *machines.World, r ask) (any, error) {
	weather, err := w.Weather()
	if err != nil {
		return nil, err
	}
	if _, err := prepare(ctx, w, ask{Image: r.Image}); err != nil {
		return nil, err
	}
	if err := hold(ctx, weather.CreateDelay); err != nil {
		return nil, err
	}
	code, err := w.Failing()
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return nil, refusal{code, "the cloud refuses this create"}
	}
	m, err := w.Create(ctx, machines.Spec{Name: r.VM, Image: r.Image, Labels: map[string]string{operationLabel: r.Operation}})
	if err != nil {
		return nil, err
	}
	return map[string]any{"instance": describe(m)}, hold(ctx, weather.LateCreate)
}

func remove(ctx context.Context, w *machines.World, r ask) error {
	weather, err := w.Weather()
	if err != nil {
		return err
	}
	if err := hold(ctx, weather.DeleteDelay); err != nil {
		return err
	}
	err = w.Delete(ctx, r.Instance)
	if errors.Is(err, machines.ErrNotFound) {
		return nil
	}
	return err
}

// hold waits as the weather says.
func hold(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	_, _ = fmt.Fprintf(os.Stderr, "the cloud takes its time: %s\n", d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
