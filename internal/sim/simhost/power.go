package simhost

import (
	"context"
	"fmt"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simsystemd"
)

// PowerOn starts a host that is off. sshd and the units are up BootDelay later.
func (h *Host) PowerOn() {
	b := &boot{id: h.uuid(), procs: map[int]*process{}, lastPID: 700}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.systemd = simsystemd.New(simsystemd.Options{Clock: h.o.Clock, Files: h.files, Spawner: &spawner{h: h, b: b}})
	h.mu.Lock()
	if h.boot != nil {
		h.mu.Unlock()
		b.cancel()
		return
	}
	h.boot = b
	h.boots++
	h.mu.Unlock()
	h.freshRun(b)
	h.wait.Add(1)
	go func() {
		defer h.wait.Done()
		if !simclock.Sleep(b.ctx, h.o.Clock, h.o.BootDelay) {
			return
		}
		b.systemd.Start(h.o.Unit)
		h.server.open(b)
		h.mu.Lock()
		defer h.mu.Unlock()
		b.up = h.boot == b
	}()
}

// freshRun makes what a kernel and an empty tmpfs give.
func (h *Host) freshRun(b *boot) {
	for _, dir := range []string{"/run", "/proc"} {
		h.files.RemoveAll(dir)
		_ = h.files.Mkdir(dir, memfs.Root, 0o755, true) // a new tmpfs has room
	}
	for _, dir := range []string{"/run/lock", "/run/systemd/system"} {
		_ = h.files.Mkdir(dir, memfs.Root, 0o755, true)
	}
	_ = h.files.Chmod("/run/lock", 0o777)
	_ = h.files.Mkdir("/run/user/1000", memfs.Root, 0o755, true)
	_ = h.files.Chown("/run/user/1000", h.o.User)
	h.files.Generate("/proc/sys/kernel/random/boot_id", func() []byte { return []byte(b.id + "\n") })
	began := h.o.Clock.Now()
	h.files.Generate("/proc/uptime", func() []byte {
		up := h.o.Clock.Now().Sub(began).Seconds()
		return fmt.Appendf(nil, "%.2f %.2f\n", up, up)
	})
	h.proc(b, &process{pid: 1, argv: []string{"/usr/lib/systemd/systemd"}, user: memfs.Root})
}

// PowerCut takes the power away: everything on the host ends at once, unheard.
// Its disk stays as it is; /run is gone.
func (h *Host) PowerCut() {
	b := h.running()
	if b == nil {
		return
	}
	b.systemd.Halt() // first: nothing is started from here on
	h.mu.Lock()
	if h.boot != b {
		h.mu.Unlock()
		return // somebody else was quicker
	}
	h.boot, b.up = nil, false
	procs := make([]*process, 0, len(b.procs))
	for _, p := range b.procs {
		procs = append(procs, p)
	}
	h.mu.Unlock()
	b.cancel()
	h.server.close()
	for _, p := range procs {
		h.kill(p)
	}
	h.podman.clear()
	h.locks.clear()
}

// Reboot shuts down in order, as `systemctl reboot` does, and starts again:
// sshd goes first, then the units are stopped with their own limits.
func (h *Host) Reboot() {
	b := h.running()
	if b == nil {
		h.PowerOn()
		return
	}
	h.server.close()
	for _, t := range b.systemd.Shutdown() {
		select {
		case <-t.Done():
		case <-b.ctx.Done():
			return // somebody cut the power meanwhile
		}
	}
	h.PowerCut()
	h.PowerOn()
}

// Crash is a power cut after which the host comes back by itself.
func (h *Host) Crash() {
	h.PowerCut()
	h.PowerOn()
}

// Destroy ends the host for good and waits until nothing of it runs.
func (h *Host) Destroy() {
	h.PowerCut()
	h.server.destroy()
	h.wait.Wait()
}

// String names the host and its state.
func (h *Host) String() string {
	return fmt.Sprintf("%s (%s)", h.o.Name, h.Address())
}
