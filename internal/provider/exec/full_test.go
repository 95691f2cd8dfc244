package exec

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// smallDisk mounts a disk of 256 KiB. Where that is not allowed the test is
// passed over, and fails with CI=true.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("a small disk cannot be mounted: %v", err)
		}
		t.Skipf("needs the right to mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	err := os.WriteFile(path, make([]byte, 1<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
}

func TestAFullDiskIsSaidBeforeAnythingIsTouched(t *testing.T) {
	disk, w := smallDisk(t), newToy(t)
	p := newProvider(t, w.config(t, disk))
	fill(t, filepath.Join(disk, "ballast"))
	_, err := p.Prepare(t.Context(), "vm-1", "toy-42")
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "lab/vm-1", "no space left", disk, "not full")
	_, err = p.Create(t.Context(), createOrder("vm-1", 1))
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "lab/vm-1", "not started", disk)
	if n := w.calls(t, VerbCreate); n != 0 {
		t.Errorf("%d creates ran", n)
	}
}

// Seed 53 of the worlds in real time: one VM's probe took the other's away.
func TestTwoVMsArePreparedAtOnce(t *testing.T) {
	p := newProvider(t, newToy(t).config(t, t.TempDir()))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 20 {
				if err := p.probeState(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestADiskThatFillsDuringACreateLeavesOneVM(t *testing.T) {
	disk, w := smallDisk(t), newToy(t)
	p := newProvider(t, w.config(t, disk))
	w.HoldActs(t, true)
	if _, err := p.Create(t.Context(), createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(disk, "ballast"))
	w.HoldActs(t, false)
	progress, err := settleCreate(t, p, createOrder("vm-1", 1))
	if err != nil || len(w.ids(t)) != 1 || progress.Instance.ID != w.ids(t)[0] {
		t.Fatalf("answers %+v, %v; the cloud has %v", progress, err, w.ids(t))
	}
}
