package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simcloud"
)

// between is a cloud to which something happens between two calls.
type between struct {
	*simcloud.Cloud
	prepared func()
}

func (b *between) Prepare(ctx context.Context, vm, image string) (fleet.Prepared, error) {
	defer b.prepared()
	return b.Cloud.Prepare(ctx, vm, image)
}

// A trigger waits for its image by the very calls that an operation's preflight
// makes: resolved, and looked up.
func TestAnImageIsFoundOnceItIsThereAndNoSooner(t *testing.T) {
	cloud := simcloud.New(simcloud.Options{Clock: simclock.NewReal(time.Now), Images: []string{"image-1"}})
	t.Cleanup(cloud.Close)
	machines := &between{cloud, func() {}}
	look := images{"gcp": {Machines: machines}, "unused": &engine.Fleet{}}
	find := func(vm, image string) error { return look.Find(t.Context(), "gcp", vm, image) }
	missing := func(err error) bool {
		return fleet.CodeOf(err) == fleet.CodeImageMissing && strings.Contains(err.Error(), `"image-2"`)
	}

	if err := find("runner-01", "image-2"); !missing(err) {
		t.Errorf("before it is built: %v", err)
	}
	cloud.AddImage("image-2")
	if err := find("runner-01", "image-2"); err != nil {
		t.Errorf("when it is built: %v", err)
	}
	if err := find("No Name", "image-2"); fleet.CodeOf(err) != fleet.CodeInvalid {
		t.Errorf("a VM that cannot be made: %v", err)
	}
	machines.prepared = func() { cloud.RemoveImage("image-2") }
	if err := find("runner-01", "image-2"); !missing(err) {
		t.Errorf("when it was taken away: %v", err)
	}
	if err := look.Find(t.Context(), "gone", "runner-01", "image-1"); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("of a fleet that is not configured: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	if end(); !errors.Is(look.Find(ended, "gcp", "runner-01", "image-1"), context.Canceled) {
		t.Error("it goes on when nobody waits any more")
	}
}
