package providertest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// patience bounds every wait of the suite, in real time.
const patience = 30 * time.Second

// await polls until ready says true; the test fails when patience ends.
func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-deadline.C:
			t.Fatalf("waited %s in vain: %s", patience, what)
		case <-tick.C:
		}
	}
}

func operation(n int) string { return "op-contract" + strconv.Itoa(n) }

// creation is the order for an operation's attempt at creating vm.
func creation(t *testing.T, s Setup, vm, op string, attempt int) engine.CreateOrder {
	t.Helper()
	prepared, err := s.Machines.Prepare(t.Context(), vm, s.Image)
	if err != nil {
		t.Fatalf("prepare %s with image %s: %v", vm, s.Image, err)
	}
	return engine.CreateOrder{
		Ref: fleet.Ref{Fleet: s.Fleet, VM: vm}, Operation: op, Attempt: attempt,
		Token: fleet.RequestToken(op, "create", attempt), Prepared: prepared,
	}
}

func deletion(s Setup, vm, op string, attempt int, instance string) engine.DeleteOrder {
	return engine.DeleteOrder{
		Ref: fleet.Ref{Fleet: s.Fleet, VM: vm}, Operation: op, Attempt: attempt,
		Token: fleet.RequestToken(op, "delete", attempt), Instance: instance,
	}
}

// finish repeats an act, as the engine does, until it is done or fails.
func finish(t *testing.T, act func(context.Context) (engine.Progress, error)) (engine.Progress, error) {
	t.Helper()
	var progress engine.Progress
	var err error
	await(t, "the act to be done", func() bool {
		progress, err = act(t.Context())
		return progress.Done || err != nil
	})
	return progress, err
}

func mustCreate(t *testing.T, s Setup, order engine.CreateOrder) fleet.Instance {
	t.Helper()
	progress, err := finish(t, func(ctx context.Context) (engine.Progress, error) { return s.Machines.Create(ctx, order) })
	if err != nil {
		t.Fatalf("create %s: %v", order.Ref, err)
	}
	if progress.Instance == nil || progress.Instance.ID == "" {
		t.Fatalf("create %s is done and names no instance: %+v", order.Ref, progress)
	}
	return *progress.Instance
}

func mustDelete(t *testing.T, s Setup, order engine.DeleteOrder) {
	t.Helper()
	_, err := finish(t, func(ctx context.Context) (engine.Progress, error) { return s.Machines.Delete(ctx, order) })
	if err != nil {
		t.Fatalf("delete instance %s of %s: %v", order.Instance, order.Ref, err)
	}
}

func describe(t *testing.T, s Setup, vm string) []fleet.Instance {
	t.Helper()
	list, err := s.Machines.Describe(t.Context(), vm)
	if err != nil {
		t.Fatalf("describe %s: %v", vm, err)
	}
	return list
}

// ids yields the ids of instances, in order of their appearance.
func ids(list []fleet.Instance) string {
	var names []string
	for _, instance := range list {
		names = append(names, instance.ID)
	}
	return strings.Join(names, " ")
}

// wantOne fails unless exactly that instance carries the name.
func wantOne(t *testing.T, s Setup, vm, id string) {
	t.Helper()
	list := describe(t, s, vm)
	if len(list) != 1 || list[0].ID != id {
		t.Fatalf("%s is carried by [%s], want exactly %s", vm, ids(list), id)
	}
}

func wantCode(t *testing.T, what string, err error, code fleet.Code) {
	t.Helper()
	if got := fleet.CodeOf(err); got != code {
		t.Fatalf("%s: code %q, want %q (error: %v)", what, got, code, err)
	}
}

// able yields the world as one of the optional interfaces, or skips.
func able[T any](t *testing.T, s Setup) T {
	t.Helper()
	ability, ok := s.World.(T)
	if !ok {
		t.Skipf("this world is no %T", (*T)(nil))
	}
	return ability
}

// needTwins skips a case that needs two instances of one name.
func needTwins(t *testing.T, s Setup) {
	t.Helper()
	if s.UniqueNames {
		t.Skip("the cloud itself refuses a second instance of a name")
	}
}

// needImages skips a case that needs a cloud which can be asked for images.
func needImages(t *testing.T, s Setup) {
	t.Helper()
	if s.NoImage == "" {
		t.Skip("this cloud cannot be asked for images")
	}
}
